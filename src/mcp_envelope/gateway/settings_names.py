"""Names for upstreams that nobody named, and what becomes of names in front of tools' names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

_LONGEST: Final = 64
_ENDINGS: Final = re.compile(
    r"\.(exe|cmd|bat|ps1|py|pyz|js|mjs|cjs|ts|mts|sh|jar|rb)$", re.IGNORECASE
)
_PYTHON: Final = re.compile(r"(python|pypy)[0-9.]*[a-z]?")
_DULL: Final = frozenset({"index", "main", "__main__", "dist", "build", "src", "lib", "bin", "out"})
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
#: Runners that are two words; the second one is passed over.
_SUBCOMMANDS: Final = {
    "uv": ("run", "tool"),
    "npm": ("exec", "x", "run"),
    "pnpm": ("dlx", "exec", "run"),
    "yarn": ("dlx", "run", "exec"),
    "bun": ("x", "run"),
    "deno": ("run",),
    "pipx": ("run",),
    "poetry": ("run",),
    "hatch": ("run",),
    "docker": ("container", "run"),
    "podman": ("container", "run"),
    "nerdctl": ("container", "run"),
}
#: Options of runners that take the next word.
_VALUES: Final = {
    "uv": "--from --with --with-editable --with-requirements -p --python --index --index-url"
    " --default-index --extra-index-url --directory --project --env-file --group --extra -f -i",
    "npx": "-p --package --prefix --registry --workspace -w --cache",
    "docker": "--name -e --env --env-file -v --volume --mount -p --publish --network --net -u"
    " --user -w --workdir --entrypoint --platform --pull -l --label -h --hostname --add-host"
    " --memory -m --cpus --gpus --device --tmpfs --security-opt --cap-add --cap-drop --restart"
    " --runtime --shm-size --ulimit --volumes-from --log-driver --log-opt --ip --dns --cidfile",
    "node": "-r --require --import --loader --experimental-loader --env-file -C --conditions",
    "deno": "--config -c --import-map --env-file --lock",
    "java": "-cp -classpath --class-path -p --module-path",
}
_FAMILIES: Final = {
    "uvx": "uv", "uv": "uv", "pipx": "uv", "poetry": "uv", "hatch": "uv",
    "npx": "npx", "npm": "npx", "pnpm": "npx", "pnpx": "npx", "yarn": "npx", "bunx": "npx",
    "docker": "docker", "podman": "docker", "nerdctl": "docker",
    "node": "node", "nodejs": "node", "bun": "node", "tsx": "node", "ts-node": "node",
    "deno": "deno", "java": "java",
}  # fmt: skip


def name_of_command(command: Sequence[str]) -> str:
    """A name for the server that a command starts: ``uvx mcp-server-time`` is mcp-server-time."""
    words = [word for word in command if word]
    if words and _base(words[0]) == "env":
        words = words[1:]
        while words and (words[0].startswith("-") or _ASSIGNMENT.match(words[0])):
            words = words[1:]
    if not words:
        return "server"
    program, rest = _base(words[0]), words[1:]
    if _PYTHON.fullmatch(program):
        return _allowed(_module(rest) or program)
    family = _FAMILIES.get(program)
    if family is None:
        return _allowed(program)
    with_value = _VALUES[family].split()
    inner = _first_word(_after_subcommand(program, rest, with_value), with_value)
    if inner is None:
        return _allowed(program)
    if _PYTHON.fullmatch(_base(inner)) and inner in rest:
        return _allowed(_module(rest[rest.index(inner) + 1 :]) or _base(inner))
    return _allowed(_READERS[family](inner))


def name_of_url(url: str) -> str:
    """A name for the server at a URL: its host, and its port if one is named."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "server"
    return _allowed(f"{host}-{port}" if port is not None else host)


def prefix_of(name: str) -> str:
    """What stands before ``__`` in front of a tool's name: letters, digits, ``-`` and ``_``.

    Many model APIs allow nothing else, and ``__`` must be the first of its kind. Empty if
    nothing of the name is left.
    """
    return re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_-]", "_", name)).strip("_")


def _allowed(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:_LONGEST].rstrip("-._")
    return plain or "server"


def _base(word: str) -> str:
    return _ENDINGS.sub("", re.split(r"[/\\]", word.rstrip("/\\"))[-1])


def _after_subcommand(program: str, words: list[str], with_value: list[str]) -> list[str]:
    known = _SUBCOMMANDS.get(program, ())
    first = _first_word(words, with_value)
    if first not in known:
        return words
    rest = words[words.index(first) + 1 :]
    return rest[1:] if rest and rest[0] == "run" else rest


def _first_word(words: list[str], with_value: list[str]) -> str | None:
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("-") and len(word) > 1:
            skip = word in with_value
        else:
            return word
    return None


def _module(words: list[str]) -> str | None:
    """What Python is told to run: a module's name, or a script's."""
    rest = iter(words)
    for word in rest:
        if word == "-m":
            return next(rest, None)
        if word == "-c":
            return None
        if word in ("-W", "-X"):
            next(rest, None)
        elif not word.startswith("-"):
            return _script(word)
    return None


def _script(path: str) -> str:
    steps = [step for step in re.split(r"[/\\]", path) if step not in ("", ".", "..")]
    names = [_ENDINGS.sub("", step) for step in steps]
    telling = [name for name in names if name not in _DULL and not name.endswith(":")]
    return telling[-1] if telling else (names[-1] if names else "server")


def _python_package(word: str) -> str:
    if "://" in word or word.startswith("git+"):
        return urlsplit(word.partition("@")[0]).path.rsplit("/", 1)[-1].removesuffix(".git")
    if re.search(r"[/\\]|\.py$", word):
        return _script(word)
    return re.split(r"[@=<>!~\[]", word, maxsplit=1)[0]


def _node_package(word: str) -> str:
    if "://" in word or word.startswith(("git+", "github:")):
        return word.partition("#")[0].rsplit("/", 1)[-1].removesuffix(".git")
    if word.startswith((".", "/")):
        return _script(word)
    name = word.rsplit("/", 1)[-1] if word.startswith("@") else word
    return name.partition("@")[0]


def _image(word: str) -> str:
    return word.partition("@")[0].rsplit("/", 1)[-1].partition(":")[0]


_READERS: Final[dict[str, Callable[[str], str]]] = {
    "uv": _python_package,
    "npx": _node_package,
    "docker": _image,
    "node": _script,
    "deno": _node_package,
    "java": _script,
}

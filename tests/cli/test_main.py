"""What holds whichever verb is asked for."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

import mcp_envelope as me
from mcp_envelope import cli
from mcp_envelope.cli import VERBS, console

from .conftest import Run

FILE_VERBS = ("validate", "wrap", "digest", "convert")
BAD = {
    "nothing at all": b"",
    "bytes that are no text": b"\x89PNG\r\n\x1a\n\x00\x00\xff\xfe",
    "half a document": b'{"a":',
    "a key given twice": b'{"a":1,"a":2}',
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "100,000 brackets": b"[" * 100_000,
}


def module_of(verb: str) -> ModuleType:
    """The module of a verb."""
    return importlib.import_module(f"{cli.__name__}.{verb.replace(' ', '_')}")


def words_for(verb: str, file: str) -> list[str]:
    """A command line that reads a file."""
    return [verb, file, *(["--to", "mcp"] if verb == "convert" else [])]


def test_alone_it_prints_help_and_that_is_a_mistake(run: Run) -> None:
    """Nothing at all: the help on standard error, exit code 2."""
    done = run()
    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith("usage: mcp-envelope VERB")


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_help_lists_every_verb(run: Run, word: str) -> None:
    """The help on standard output, exit code 0, a line for every verb, in 88 columns."""
    done = run(word)
    assert (done.code, done.err) == (0, "")
    text = done.out.decode()
    assert all(f"\n  {verb} " in text for verb in VERBS)
    assert max(map(len, text.splitlines())) <= 88


def test_a_group_without_a_verb(run: Run) -> None:
    """Its own usage and its own verbs, on standard error, exit code 2; with --help it is fine."""
    done = run("ledger")
    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith("usage: mcp-envelope ledger VERB [ARGUMENT ...]\n")
    assert "\n  query       find calls" in done.err
    assert "\nmcp-envelope ledger VERB --help explains a verb" in done.err
    assert "validate" not in done.err
    assert "130 interrupted" in done.err
    asked = run("ledger", "--help")
    assert (asked.code, asked.out.decode()) == (0, done.err)


def test_version(run: Run) -> None:
    """The version is the package's."""
    assert run("--version").out.decode() == f"mcp-envelope {me.__version__}\n"


@pytest.mark.parametrize(
    "word,said",
    [
        ("valdate", "no verb 'valdate'; did you mean validate? see mcp-envelope --help"),
        ("xyz", "no verb 'xyz'; see mcp-envelope --help"),
        ("--strict", "a verb comes first, options after it; see mcp-envelope --help"),
        ("\x1b[2J", "no verb '\\x1b[2J'; see mcp-envelope --help"),
    ],
)
def test_unknown_verbs_are_mistakes(run: Run, word: str, said: str) -> None:
    """A word that is no verb: exit code 2, and the nearest verb if there is one near."""
    done = run(word)
    assert (done.code, done.out, done.err) == (2, b"", f"mcp-envelope: {said}\n")
    assert run(word, "--json").json["error"]["message"] == said.partition(";")[0]


def test_every_verb_has_a_module_and_every_module_a_verb() -> None:
    """The table of verbs and the files of the package agree; a verb's file has an example."""
    stems = {path.stem for path in Path(str(cli.__file__)).parent.glob("*.py")} - {"__init__"}
    modules = {stem for stem in stems if hasattr(module_of(stem), "EXAMPLE")}
    assert modules == {verb.replace(" ", "_") for verb in VERBS}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("word", ["--help", "-h"])
def test_every_verb_explains_itself(run: Run, verb: str, word: str) -> None:
    """``--help`` has a usage line, every argument with a help of its own, and an example."""
    done = run(*verb.split(), "no-such-file", "--no-such-option", word)
    text = done.out.decode()
    assert (done.code, done.err) == (0, "")
    assert text.startswith(f"usage: mcp-envelope {verb} ")
    assert text.endswith(f"example:\n  {module_of(verb).EXAMPLE}\n")
    assert "  --json" in text
    assert max(map(len, text.splitlines())) <= 88


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_has_help(verb: str) -> None:
    """No argument and no option is without a help text and, if it takes one, a value's name."""
    declared = cli.parser(verb).declared
    assert declared[-1].option_strings == ["--json"]
    assert not [a.dest for a in declared if not a.help or (a.nargs != 0 and not a.metavar)]


@pytest.mark.parametrize("verb", VERBS)
def test_examples_are_command_lines_that_parse(verb: str) -> None:
    """The example of a verb's help is one that its own parser accepts."""
    start, _, rest = re.split(r" [|>] ", module_of(verb).EXAMPLE)[0].partition(f" {verb}")
    assert start == "mcp-envelope"
    cli.parser(verb).parse(rest.split())


@pytest.mark.parametrize("verb", FILE_VERBS)
@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_bad_documents_do_not_hold(run: Run, verb: str, data: bytes) -> None:
    """Whatever is in a file: exit code 1, one place, no traceback, with --json as JSON."""
    done = run(*words_for(verb, "-"), given=data)
    said = done.err + done.out.decode()
    assert done.code == 1
    assert "line 1, column" in said or "nested deeper" in said or "too deep" in said
    again = run(*words_for(verb, "-"), "--json", given=data)
    assert (again.code, again.err) == (1, "")
    found = again.json if verb == "validate" else again.json["error"]
    assert found["problems"][0]["rule"].startswith("document/")
    assert verb == "validate" or found["code"] == "INVALID_ENVELOPE"


@pytest.mark.parametrize("verb", FILE_VERBS)
def test_files_that_cannot_be_read_are_mistakes(run: Run, verb: str, tmp_path: Path) -> None:
    """No such file, a folder, an empty name: exit code 2, named, with what to do."""
    for name in (str(tmp_path / "absent.json"), str(tmp_path), "", "a\0b", "\ud800"):
        done = run(*words_for(verb, name))
        assert (done.code, done.out) == (2, b"")
        assert done.err.endswith("; name a file, or - for standard input\n")
        assert done.err.count("\n") == 1
        error = run(*words_for(verb, name), "--json").json["error"]
        assert error["hint"] == "name a file, or - for standard input"


@pytest.mark.parametrize("verb", FILE_VERBS)
def test_a_file_and_standard_input_are_the_same(run: Run, verb: str, examples: Path) -> None:
    """``-`` reads what a file of that content would give."""
    data = (examples / "mcp-call.json").read_bytes()
    assert run(*words_for(verb, "-"), given=data) == run(*words_for(verb, "mcp-call.json"))


@pytest.mark.parametrize("verb", ["validate", "wrap"])
def test_what_is_too_large_is_refused(run: Run, verb: str, tmp_path: Path) -> None:
    """A file of a gigabyte does not hold, and no more of it is read than shows that."""
    with (tmp_path / "long").open("wb") as file:
        file.truncate(2**30)
    done = run(*words_for(verb, str(tmp_path / "long")))
    assert done.code == 1
    assert "67,108,865 bytes" in done.err + done.out.decode()


@pytest.mark.parametrize(
    "words,said",
    [
        (["validate"], "the following arguments are required: FILE"),
        (["validate", "a", "b"], "one argument too many: 'b'"),
        (["validate", "--dialct", "mcp"], "no option --dialct"),
        (["validate", "a", "-x"], "no option -x"),
        (["convert", "a", "--too", "mcp"], "no option --too"),
        (["convert", "a"], "the following arguments are required: --to"),
        (["convert", "a", "--to"], "argument --to: expected one argument"),
        (["digest", "a", "--form=x", "--alg2=y"], "no option --alg2"),
    ],
)
def test_command_lines_that_make_no_sense(run: Run, words: list[str], said: str) -> None:
    """Exit code 2; what is wrong, and where the help is, and the nearest option."""
    done = run(*words)
    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith(f"mcp-envelope: {said}; ")
    assert done.err.endswith(f"see mcp-envelope {words[0]} --help\n")
    assert run(*words, "--json").json["error"]["message"] == said


def test_the_nearest_option_is_named(run: Run) -> None:
    """A slip of the pen costs one look."""
    assert "did you mean --dialect?" in run("validate", "a", "--dialct", "mcp").err


def test_words_behind_two_dashes_are_no_options(run: Run, examples: Path) -> None:
    """A file may be called ``--json``."""
    (examples / "--json").write_bytes(b"1")
    done = run("wrap", "--", "--json")
    assert done.out == b'{"schema_version":"mcp.envelope.v0.1","result":1}'


def test_lack_of_memory_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory at its end is no fault of the program's: exit code 3, a sentence."""

    def read(self: console.Console, name: str) -> bytes:
        raise MemoryError

    monkeypatch.setattr(console.Console, "read", read)
    assert (run("wrap", "-").code, run("wrap", "-").err) == (3, "mcp-envelope: not enough memory\n")
    assert run("wrap", "-", "--json").json == {"error": {"message": "not enough memory"}}

"""docs/gateway.md and docs/running.md: what they show can be used, and names what there is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from mcp_envelope.cli import VERBS, main
from mcp_envelope.core import codes
from mcp_envelope.gateway.settings import Rules
from mcp_envelope.gateway.settings_file import Given, load

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("adr/*.md"), *ROOT.glob("*.md")])
GATEWAY = (DOCS / "gateway.md").read_text(encoding="utf-8")
RUNNING = (DOCS / "running.md").read_text(encoding="utf-8")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def encoded(text: str, _: object) -> bytes:
    """A text, whatever file was asked for."""
    return text.encode()


def anchors_in(page: Path) -> set[str]:
    """The anchors that the headings of a page have."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record that was made as README shows."""
    folder = tmp_path_factory.mktemp("record")
    words = ["run", "--ledger", "jsonl:calls.jsonl", "--", sys.executable]
    program = [sys.executable, "-m", "mcp_envelope", *words, str(ROOT / "examples" / "server.py")]
    call = (ROOT / "examples" / "count-words.json").read_bytes()
    refused = call.replace(b'"text"', b'"txt"').replace(b'"id":7', b'"id":8')
    done = subprocess.run(
        program, input=call + refused, cwd=folder, capture_output=True, timeout=60, check=True
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    answers = {answer["id"]: answer["result"] for answer in said}
    assert answers[7]["structuredContent"] == {"words": 3, "characters": 10}
    assert answers[8]["isError"] is True
    return folder / "calls.jsonl"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    """To a file that is there, and to a heading that it has."""
    for name, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), name
        if anchor and target.suffix == ".md":
            assert anchor in anchors_in(target), f"{name}#{anchor}"


@pytest.mark.requires("jq", "bash")
@pytest.mark.parametrize("recipe", blocks(RUNNING, "sh"))
def test_recipes_read_a_record(ledger: Path, recipe: str) -> None:
    """Each one-liner runs on a real record."""
    words = ["bash", "-o", "pipefail", "-c", recipe]
    done = subprocess.run(words, cwd=ledger.parent, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    if "refused" in recipe:
        assert b"INVALID_TOOL_INPUT" in done.stdout


@pytest.mark.parametrize(
    "command",
    re.findall(r"^\$ mcp-envelope (ledger (?:query|show|tail) .+)$", RUNNING, re.MULTILINE),
)
def test_verbs_read_a_record(
    ledger: Path, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each search that is shown runs on a real record."""
    monkeypatch.chdir(ledger.parent)
    lines = map(json.loads, ledger.read_bytes().splitlines())
    (refused,) = [line["request_id"] for line in lines if line["event"] == "refused"]
    words = command.replace("calls.db", ledger.name).replace(" ID", f" {refused}").split()
    assert main([word for word in words if word != "--follow"]) == 0
    said = capsys.readouterr().out
    if {"failed", "count_words", "show", "tail"} & set(words):
        assert "INVALID_TOOL_INPUT" in said


def test_settings_that_are_shown_can_be_used() -> None:
    """The file of the service, and what clients keep about their servers."""
    (toml,) = blocks(RUNNING, "toml")
    settings = load(Given(config="s.toml", environment={}), partial(encoded, toml)).settings
    assert settings.upstreams[0].rules.timeout == 120.0
    for text in blocks(RUNNING, "json"):
        given = Given(clients="mcp.json", environment={})
        found = load(given, partial(encoded, text)).settings.upstreams
        assert found[0].command[1:3] == ("run", "--")


def test_codes_that_are_named_exist() -> None:
    """What looks like one of our codes is one."""
    for page in (GATEWAY, RUNNING):
        named = set(re.findall(r"`([A-Z]+_[A-Z_]+)`", page)) | set(
            re.findall(r"errors/([A-Z_]+)\.md", page)
        )
        assert named
        assert sorted(named - set(codes.TABLE)) == []


def test_the_defaults_are_the_bold_ones() -> None:
    """Of each rule with several values the default is marked."""
    for name in ("unknown_tools", "input", "output"):
        (row,) = re.findall(rf"`{name}`: ([^|]+) \|", GATEWAY)
        assert f"**`{getattr(Rules(), name)}`**" in row


def test_the_label_has_the_fields_of_the_page(ledger: Path) -> None:
    """Every field that a label always has is in the table, in the example too."""
    (example,) = blocks(GATEWAY, "json")
    shown = json.loads(example)["_meta"]["dev.mcp-envelope/record"]
    table = GATEWAY.partition("| field | is |")[2].partition("\n\n")[0]
    rows = [row.split(" | ")[0] for row in table.splitlines()[2:]]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(shown) == listed - {"envelope", "upstream", "task"}


def test_verbs_that_are_used_exist() -> None:
    """After the program's name stands a verb that there is."""
    for page in (GATEWAY, RUNNING):
        used = re.findall(r"(?:^\$ |^|`)mcp-envelope ([a-z]+)(?: ([a-z]+))?", page, re.MULTILINE)
        assert used
        assert [pair for pair in used if not {pair[0], " ".join(pair)} & set(VERBS)] == []

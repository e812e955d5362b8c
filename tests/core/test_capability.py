"""Capabilities: patterns over kinds, the truth table, and a naive matcher to agree with."""

from __future__ import annotations

import doctest
import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_envelope.core.capability import Capabilities
from mcp_envelope.core.errors import ConfigError, EnvelopeError, UsageError
from mcp_envelope.core.kind import Kind

SHARED = Path(__file__).resolve().parents[1] / "vectors" / "shared"
TABLE = json.loads((SHARED / "capabilities.json").read_text(encoding="utf-8"))
TYPES = ["request", "response", "proposal"]
CALL = "mcp/request:tools/call"
READ = "mcp/request:resources/read"

# A pattern outside the grammar, and what the refusal must speak of: the rule, then the suggestion.
REFUSED = [
    ("", "TYPE is empty", "mcp/*"),
    ("*", "bare '*'", "mcp/*"),
    ("**", "bare '*'", "mcp/*"),
    ("*:*", "TYPE", "mcp/*"),
    (":tools/call", "TYPE is empty", "mcp/request"),
    ("mcp", "no TYPE", "begin with"),
    ("mcp/", "no TYPE", "begin with"),
    ("mcp*", "'mcp/*'", "write 'mcp/*'"),
    ("mcp/req*", "'mcp/*'", "write 'mcp/request:*'"),
    ("mcp/re*", "'mcp/*'", "write 'mcp/*'"),
    ("*/request:tools/call", "'mcp/*'", "write 'mcp/*'"),
    ("mcp/*:tools/call", "nothing may stand behind", "'mcp/response:tools/call'"),
    ("mcp/*:*", "nothing may stand behind", "'mcp/request:*'"),
    ("mcp/*:", "nothing may stand behind", "name the TYPE"),
    ("mcp/event:tools/call", "no TYPE", "mcp/proposal"),
    ("request:tools/call", "no TYPE", "write 'mcp/request'"),
    ("MCP/request:tools/call", "case-sensitive", "write 'mcp/request'"),
    ("Chat", "case-sensitive", "write 'chat'"),
    ("chat:*", "nothing follows", "write chat"),
    ("chat*", "TYPE", "write"),
    ("system", "gateway", "leave it out"),
    ("system/*", "gateway", "leave it out"),
    ("system/error", "gateway", "leave it out"),
    ("presence", "gateway", "leave it out"),
    (" mcp/*", "white space", "take"),
    ("mcp/* ", "white space", "take"),
    ("chat\n", "white space", "take"),
    ("mcp/request:", "METHOD is empty", "name one"),
    ("mcp/request::x", "METHOD is empty", "name one"),
    ("mcp/request:tools/", "empty segment", "write one '/'"),
    ("mcp/request:/list", "empty segment", "write one '/'"),
    ("mcp/request:tools//call", "empty segment", "write one '/'"),
    ("mcp/request:tools/c*", "whole segment", "'tools/*'"),
    ("mcp/request:*s/list", "whole segment", "'*/list'"),
    ("mcp/request:tools*", "whole segment", "'*'"),
    ("mcp/request:**", "'**'", "'mcp/request:*'"),
    ("mcp/request:**/list", "'**'", "'mcp/request:*/list'"),
    ("mcp/request:tools/**", "'**'", "'mcp/request:tools/*'"),
    ("mcp/request:tools/call:**", "'**'", "'mcp/request:tools/call:*'"),
    ("mcp/request:tools/call:a***b", "'**'", "'mcp/request:tools/call:a*b'"),
    ("mcp/request:tools /call", "white space", "take"),
    ("mcp/request:töols/call", "not ASCII", "look-alike"),
    ("mcp/request:tools/call:", "CONTEXT is empty", "leave out"),
    ("mcp/request:tools/call: x", "white space", "take"),
    ("mcp/request:tools/call:x\t", "U+0009", "take"),
    ("mcp/request:tools/call:a\u200bb", "U+200B", "take"),
]


def granted(pattern: str, kind: str) -> bool:
    """Whether one pattern allows one kind, asked as text and as a Kind; refused ones do not."""
    try:
        capabilities = Capabilities([pattern])
    except ConfigError:
        return False
    verdict = capabilities.allows(kind)
    try:
        parsed = Kind.parse(kind)
    except EnvelopeError:
        assert not verdict, "a malformed kind was allowed"
        return False
    assert capabilities.allows(parsed) is verdict
    assert (
        capabilities.granting(kind)
        == capabilities.granting(parsed)
        == (pattern if verdict else None)
    )
    return verdict


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['pattern']} | {row['kind']}")
def test_the_truth_table_holds(row: dict[str, str | bool]) -> None:
    """Every row of the contract's capabilities.json is right."""
    assert granted(str(row["pattern"]), str(row["kind"])) is row["match"]


@pytest.mark.parametrize(("pattern", "rule", "suggestion"), REFUSED)
def test_patterns_outside_the_grammar_are_refused(pattern: str, rule: str, suggestion: str) -> None:
    """Refused on loading, naming the pattern, the rule that it breaks and a suggestion."""
    with pytest.raises(ConfigError) as caught:
        Capabilities(["mcp/*", pattern])
    assert repr(pattern) in str(caught.value)
    assert rule in caught.value.message
    assert suggestion in caught.value.hint


@pytest.mark.parametrize("pattern", [None, 7, ["mcp/*"]])
def test_a_pattern_is_a_text(pattern: object) -> None:
    """A setting that is no text is refused as such."""
    with pytest.raises(ConfigError, match="is a text"):
        Capabilities([pattern])  # type: ignore[list-item]


def test_capabilities_are_a_list() -> None:
    """One text in the place of a list is not taken for a list of letters."""
    with pytest.raises(UsageError, match="list"):
        Capabilities("mcp/*")


@pytest.mark.parametrize(
    ("pattern", "kinds"),
    [
        ("mcp/request", [CALL, f"{CALL}:x", "mcp/request:ping"]),
        (CALL, [CALL, f"{CALL}:x", f"{CALL}:a:b/c"]),
        ("mcp/*", [f"mcp/{name}:tools/call:x" for name in TYPES]),
    ],
)
def test_a_part_that_is_left_out_matches_anything(pattern: str, kinds: list[str]) -> None:
    """A capability has the kind's three parts; a part that is left out matches anything."""
    assert all(granted(pattern, kind) for kind in kinds)


@pytest.mark.parametrize(
    ("pattern", "method", "match"),
    [
        ("*", "ping", True),
        ("*", "tools/call", True),
        ("*", "notifications/tools/list_changed", True),
        ("tools/*", "tools/call", True),
        ("tools/*", "tools/a/b", True),
        ("tools/*", "tools", False),
        ("*/list", "tools/list", True),
        ("*/list", "resources/templates/list", False),
        ("*/list", "list", False),
        ("*/*/list", "resources/templates/list", True),
        ("*/templates/*", "resources/templates/list", True),
        ("*/templates/*", "resources/templates/a/b", True),
        ("*/templates/*", "resources/templates", False),
        ("*/*", "ping", False),
        ("*/*", "tools/call", True),
        ("notifications/*/list_changed", "notifications/tools/list_changed", True),
        ("notifications/*/list_changed", "notifications/list_changed", False),
    ],
)
def test_in_method_a_star_is_a_whole_segment(pattern: str, method: str, match: bool) -> None:
    """In METHOD a `*` is one whole segment, as the last segment one or more."""
    assert granted(f"mcp/request:{pattern}", f"mcp/request:{method}") is match
    # The same, where the METHOD also stands in a pattern by name, which is another way inside.
    both = Capabilities([f"mcp/request:{pattern}", f"mcp/request:{method}:only"])
    assert both.allows(f"mcp/request:{method}") is match


def test_in_method_a_star_never_crosses_a_colon() -> None:
    """`*/list` is any list, and never the call of a tool that is named `evil/list`."""
    assert not granted("mcp/request:*/list", f"{CALL}:evil/list")
    assert not granted("mcp/request:*/list", f"{CALL}:x:tools/list")
    assert granted("mcp/request:*/list", "mcp/request:tools/list")


@pytest.mark.parametrize(
    ("pattern", "context", "match"),
    [
        ("read_*", "read_", True),
        ("read_*", "read_a/b:c", True),
        ("read_*", "Read_a", False),
        ("*_file", "read_file", True),
        ("*_file", "_file", True),
        ("*_file", "read_file2", False),
        ("a*b", "ab", True),
        ("a*b", "axxb", True),
        ("a*b", "a", False),
        ("a*a", "a", False),
        ("ab*ba", "aba", False),
        ("ab*ba", "abba", True),
        ("*mid*", "mid", True),
        ("*mid*", "amidst", True),
        ("*mid*", "mi-d", False),
        ("*x*", "axb", True),
        ("*x*", "ab", False),
        ("a*b*c", "a-b-c", True),
        ("a*b*c", "a-c-b", False),
        ("a*b*b*c", "abc", False),
        ("a*b*b*c", "abbc", True),
        ("*ab*abc*", "ababc", True),
        ("a:*", "a:b:c", True),
        ("a/*", "a/b/c", True),
        ("a?c", "abc", False),
        ("[ab]c", "ac", False),
        ("a.c", "abc", False),
        ("a.*", "a.", True),
        ("{a,b}*", "ab", False),
        ("\\*", "*", False),
        ("名*", "名前", True),
    ],
)
def test_in_context_a_star_is_any_run(pattern: str, context: str, match: bool) -> None:
    """In CONTEXT a `*` is any run of characters, `/` and `:` included; nothing else is special."""
    assert granted(f"{CALL}:{pattern}", f"{CALL}:{context}") is match


def test_context_star_alone_is_leaving_it_out() -> None:
    """`mcp/request:tools/call` and `mcp/request:tools/call:*` are both any tool call."""
    for pattern in (CALL, f"{CALL}:*"):
        assert granted(pattern, CALL)
        assert granted(pattern, f"{CALL}:x")
    assert granted(f"{READ}:*", f"{READ}:file:///a/../b")


def test_a_short_kind_matches_no_narrowing_pattern() -> None:
    """A short kind does not match a pattern that narrows the CONTEXT: its call is unknown."""
    for context in ("x", "x*", "*x", "*x*", "x*y"):
        assert not granted(f"{CALL}:{context}", CALL)
        assert not granted(f"mcp/request:*:{context}", CALL)


@pytest.mark.parametrize("name", TYPES)
def test_a_type_is_one_of_three_or_all(name: str) -> None:
    """TYPE is `request`, `response`, `proposal`, or `mcp/*` for all three."""
    for other in TYPES:
        assert granted(f"mcp/{name}:*", f"mcp/{other}:tools/list") is (name == other)
    assert granted("mcp/*", f"mcp/{name}:tools/list")


@pytest.mark.parametrize(
    "kind", ["system", "presence", "system/welcome", "system/error", "system/x"]
)
def test_nothing_grants_system_kinds(kind: str) -> None:
    """Nothing grants `system/…`, nor bare `system` or `presence`."""
    everything = Capabilities(
        ["mcp/*", "chat", "mcp/request:*", "mcp/response", "mcp/proposal:*/*"]
    )
    assert not everything.allows(kind)
    assert everything.granting(kind) is None
    assert not Capabilities(["mcp/*", "chat"]).allows(Kind("system/welcome"))


def test_chat_matches_exactly() -> None:
    """`chat` is granted by `chat` alone, and grants nothing else."""
    assert granted("chat", "chat")
    assert Capabilities(["chat"]).granting(Kind("chat")) == "chat"
    for kind in ("Chat", "chat ", "chat:", "chat:x", "chats", CALL):
        assert not granted("chat", kind)
    assert not granted("mcp/*", "chat")


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "mcp/request",
        "mcp/request:",
        f"{CALL}:",
        "mcp/request::x",
        "mcp/request:tools//call",
        "mcp/request:/",
        "mcp/request:t\u043eols/call",
        f"{CALL}\n",
        f"{CALL}:a\x00b",
        f"{CALL}:a\u200eb",
        f"{CALL}:a\u00adb",
        f"{CALL}:a\ud800",
        f" {CALL}:a",
        f"{CALL}: a",
        f"{CALL}:a ",
        f"{CALL}:a\u00a0",
        "mcp/request:tools/call :a",
        "mcp/*",
        "mcp/event:x",
    ],
)
def test_malformed_kinds_match_nothing(kind: str) -> None:
    """Malformed kinds match nothing, not even `mcp/*`, and asking about one never raises."""
    patterns = ["mcp/*", "mcp/request:*", "mcp/request:*/*:a*", CALL, f"{CALL}:a*", f"{CALL}:*b"]
    assert not Capabilities(patterns).allows(kind)
    assert Capabilities([f"{CALL}:a*"]).granting(kind) is None


def test_matching_is_by_code_point() -> None:
    """Matching is case-sensitive, by code point, without normalisation."""
    assert granted(f"{CALL}:café", f"{CALL}:café")
    assert not granted(f"{CALL}:caf\u00e9*", f"{CALL}:cafe\u0301")
    assert not granted(f"{CALL}:stra\u00dfe", f"{CALL}:strasse")
    assert not granted(f"{CALL}:\ufb01*", f"{CALL}:file")
    assert not granted(f"{CALL}:read%5F*", f"{CALL}:read_a")


@pytest.mark.parametrize(
    "method", ["resources/read", "resources/subscribe", "resources/unsubscribe"]
)
@pytest.mark.parametrize(
    "uri",
    [
        "file:///data/../etc/passwd",
        "file:///data/./x",
        "file:///data/x/..",
        "file:///data/..\\x",
        "file:///data/a\\b",
        "file:///data/%2e%2e/x",
        "file:///data/%2E./x",
        "file:///data/a%2fb",
        "file:///data/a%2Fb",
        "file:///data/a%5cb",
        "file:///data/a%5Cb",
        # Where the contract is silent, the same idea:
        "file:///data/x/.",
        "file:///data/..?x",
        "file:///data/..#x",
        "file:///data/..;x/y",
    ],
)
def test_a_narrowing_wildcard_never_leaves_its_place(method: str, uri: str) -> None:
    """A narrowing wildcard on `resources/*` never matches a URI that may climb out of its path."""
    kind = f"mcp/request:{method}:{uri}"
    for context in ("file:///data/*", "file:*", "*a*"):
        assert not granted(f"mcp/request:{method}:{context}", kind)
        assert not granted(f"mcp/request:resources/*:{context}", kind)
        assert not granted(f"mcp/request:*:{context}", kind)
    assert granted(f"mcp/request:{method}", kind)
    assert granted(f"mcp/request:{method}:{uri}", kind)
    assert granted(f"{CALL}:file:*", f"{CALL}:{uri}")


@pytest.mark.parametrize(
    "uri",
    [
        "file:///data/x",
        "file:///data/...",
        "file:///data/.git/x",
        "file:///data/a..b",
        "file:///data/%20",
    ],
)
def test_a_narrowing_wildcard_matches_plain_uris(uri: str) -> None:
    """Dots that are no segment of their own, and other escapes, do not matter."""
    assert granted(f"{READ}:file:///data/*", f"{READ}:{uri}")


def test_a_relative_uri_cannot_begin_with_dots() -> None:
    """A dot segment at the beginning counts too: the seed's own example of a URI is relative."""
    assert granted(f"{READ}:*.json", f"{READ}:config.json")
    assert not granted(f"{READ}:*.json", f"{READ}:../config.json")


def test_wildcard_methods_with_a_context_are_warned_of() -> None:
    """A wildcard METHOD with a CONTEXT is allowed, with a warning that names the pattern."""
    capabilities = Capabilities(["mcp/*", "mcp/request:*:read_*", "mcp/request:*:*"])
    (warning,) = capabilities.warnings
    assert "'mcp/request:*:read_*'" in warning
    assert Capabilities(["mcp/request:*:read_*"]).allows(f"{CALL}:read_x")


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("mcp/request:tools/list:x", "has no CONTEXT"),
        (f"{READ}:file:///data/../*", "matches nothing"),
        (f"{READ}:file:///*/./x", "matches nothing"),
        (f"{READ}:a%2F*", "matches nothing"),
    ],
)
def test_patterns_that_grant_nothing_useful_are_warned_of(pattern: str, words: str) -> None:
    """A pattern that can grant nothing, or nothing that passes strict checking, is said."""
    (warning,) = Capabilities([pattern]).warnings
    assert words in warning


def test_ordinary_patterns_are_not_warned_of() -> None:
    """The seed's own capabilities load without a word."""
    seed = [f"{CALL}:read_file", f"{CALL}:write_*", "mcp/proposal:tools/call:delete_file"]
    capabilities = Capabilities([*seed, "mcp/response:*", "chat", "mcp/*", f"{READ}:file:///a/*"])
    assert capabilities.warnings == ()
    assert capabilities.patterns[:3] == tuple(seed)
    assert repr(Capabilities(["chat"])) == "Capabilities(['chat'])"


def test_no_capabilities_allow_nothing() -> None:
    """Denied is what nothing grants."""
    for kind in ("chat", CALL, f"{CALL}:x", "mcp/response:ping"):
        assert not Capabilities([]).allows(kind)


# The naive matcher: slow, and plainly the contract.

SEGMENTS = ["a", "b", "*", "list", "ab"]
HEADS = ["mcp/request", "mcp/response", "mcp/*", "chat", "system/error", "mcp", "mcp*", "*", ""]
CLIMBS = re.compile(r"(^|[/?#;])\.\.?([/?#;]|$)|\\|%2e|%2f|%5c", re.IGNORECASE)


def plainly_globs(glob: str, text: str) -> bool:
    """Whether the glob matches, by trying every length of every prefix."""
    reach = {0}
    for char in glob:
        if char == "*":
            reach = set(range(min(reach), len(text) + 1)) if reach else set()
        else:
            reach = {at + 1 for at in reach if at < len(text) and text[at] == char}
    return len(text) in reach


def plainly_covers(pattern: list[str], method: list[str]) -> bool:
    """Whether METHOD matches, segment by segment."""
    if not pattern or not method:
        return not pattern and not method
    if pattern == ["*"]:
        return True
    return pattern[0] in ("*", method[0]) and plainly_covers(pattern[1:], method[1:])


def plainly_a_pattern(pattern: str) -> bool:
    """Whether the pattern is one, for texts of the letters that are generated here."""
    head, *rest = pattern.split(":", 2)
    if "**" in pattern or head not in ("mcp/request", "mcp/response", "mcp/*", "chat"):
        return False
    if not rest:
        return True
    segments = rest[0].split("/")
    whole = all(segment and (segment == "*" or "*" not in segment) for segment in segments)
    return whole and head.startswith("mcp/r") and "" not in rest


def plainly_granted(pattern: str, kind: str) -> bool:
    """What the contract says of one pattern and one kind."""
    if not plainly_a_pattern(pattern):
        return False
    head, *rest = pattern.split(":", 2)
    given_head, *given_rest = kind.split(":", 2)
    if kind == "chat" or head == "chat":
        return kind == pattern
    if given_head not in ("mcp/request", "mcp/response") or head not in ("mcp/*", given_head):
        return False
    if not given_rest or "" in given_rest or "" in given_rest[0].split("/"):
        return False
    if rest and not plainly_covers(rest[0].split("/"), given_rest[0].split("/")):
        return False
    if len(rest) < 2 or rest[1] == "*":
        return True
    if len(given_rest) < 2 or not plainly_globs(rest[1], given_rest[1]):
        return False
    is_uri = given_rest[0].startswith("resources/")
    return not (is_uri and "*" in rest[1] and CLIMBS.search(given_rest[1]))


def kind_like(alphabet: str) -> st.SearchStrategy[str]:
    """Texts that look like kinds or patterns, most of them well formed."""
    method = st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=3).map("/".join)
    method |= st.sampled_from(["resources/read", "resources/*", "a//b", "", "a*", "/"])
    context = st.text(alphabet, max_size=8)
    parts = st.tuples(st.sampled_from(HEADS[:3]), method, context) | st.tuples(
        st.sampled_from(HEADS[:3]), method
    )
    return parts.map(":".join) | st.sampled_from(HEADS) | st.text("mcp/*:a", max_size=8)


@given(kind_like("ab*"), kind_like("ab*") | kind_like("aab"))
def test_one_pattern_agrees_with_the_naive_matcher(pattern: str, kind: str) -> None:
    """Grammar and verdict of single patterns are those of a matcher that tries everything."""
    assert granted(pattern, kind) is plainly_granted(pattern, kind)
    try:
        Capabilities([pattern])
    except ConfigError:
        assert not plainly_a_pattern(pattern)
    else:
        assert plainly_a_pattern(pattern)


@given(
    st.lists(st.text("ab*/.", min_size=1, max_size=7).map(lambda text: re.sub(r"\*+", "*", text))),
    st.text("ab/.", min_size=1, max_size=9),
    st.sampled_from([CALL, READ]),
)
def test_many_contexts_agree_with_the_naive_matcher(
    globs: list[str], context: str, head: str
) -> None:
    """A set of patterns for one METHOD grants what one of them grants, and names such a one."""
    patterns = [f"{head}:{glob}" for glob in globs]
    kind = f"{head}:{context}"
    granting = Capabilities(patterns).granting(kind)
    fitting = [pattern for pattern in patterns if plainly_granted(pattern, kind)]
    assert (granting is None) is (not fitting)
    assert granting is None or granting in fitting
    assert Capabilities(reversed(patterns)).granting(kind) == granting


@given(st.lists(kind_like("ab*").filter(plainly_a_pattern), max_size=8), kind_like("ab"))
def test_sets_of_patterns_agree_with_the_naive_matcher(patterns: list[str], kind: str) -> None:
    """Patterns of every TYPE and METHOD beside one another do not disturb one another."""
    granting = Capabilities(patterns).granting(kind)
    fitting = [pattern for pattern in patterns if plainly_granted(pattern, kind)]
    assert (granting in fitting) if fitting else granting is None


@given(st.text() | st.text("mcp/request:tools/call*. \n"))
def test_asking_never_raises(kind: str) -> None:
    """Any text gets a verdict, and one that Kind.parse agrees with."""
    for pattern in ("mcp/*", f"{CALL}:*a*", "mcp/request:*/call:c*"):
        granted(pattern, kind)


@pytest.mark.parametrize(
    "globs",
    [
        ["a*" * 200 + "b"],
        ["*" + "a*" * 200 + "b*"],
        ["*" + "ab*" * 300 + "c"],
        ["*" + "a" * 500 + "b*"],
        [f"*{'a' * (i + 1)}b*{'a' * i}c*" for i in range(150)],
        [f"{'a' * i}*{'a' * i}b" for i in range(150)],
        [f"a*{'a' * i}*b" for i in range(1, 150)],
    ],
)
@pytest.mark.parametrize("context", ["a" * 100_000, "ab" * 50_000, "a" * 99_999 + "b"])
def test_hostile_contexts_take_bounded_time(globs: list[str], context: str) -> None:
    """No backtracking, linear time: 100,000 characters against many stars are soon decided."""
    capabilities = Capabilities([f"{CALL}:{glob}" for glob in globs])
    start = time.perf_counter()
    granting = capabilities.granting(f"{CALL}:{context}")
    assert time.perf_counter() - start < 0.5
    assert granting is None or granting in capabilities.patterns


def test_hostile_contexts_are_decided_rightly() -> None:
    """Many stars over a long CONTEXT give the verdict that counting gives."""
    head, long = f"{CALL}:", "a" * 100_000
    assert granted(head + "a*" * 200 + "b", head + long + "b")
    assert not granted(head + "a*" * 200 + "b", head + long)
    assert granted(head + "*a" * 400, head + "a" * 400)
    assert not granted(head + "*a" * 401, head + "a" * 400)
    assert granted(head + "*" + "ab*" * 300 + "c", head + "ab" * 300 + "c")
    assert not granted(head + "*" + "ab*" * 301 + "c", head + "ab" * 300 + "c")


def test_hostile_methods_take_bounded_time() -> None:
    """A METHOD of a million segments is looked at once and not once for every pattern."""
    capabilities = Capabilities([f"mcp/request:*/m{i}/*" for i in range(150)])
    kind = "mcp/request:" + "a/" * 1_000_000 + "a"
    start = time.perf_counter()
    assert not capabilities.allows(kind)
    assert time.perf_counter() - start < 1


def test_matching_uses_no_regular_expressions() -> None:
    """No regular expressions in matching: the modules of the matcher do not import any."""
    core = Path(__file__).resolve().parents[2] / "src" / "mcp_envelope" / "core"
    for name in ("kind.py", "capability.py", "globs.py"):
        text = (core / name).read_text(encoding="utf-8")
        assert not re.search(r"^\s*(import|from) (re|fnmatch|regex)\b", text, re.MULTILINE)


def test_the_examples_in_the_docs_hold() -> None:
    """Every example in docs/kinds.md gives what the page says."""
    page = Path(__file__).resolve().parents[2] / "docs" / "kinds.md"
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert tried > 10
    assert failed == 0


def test_the_docs_name_every_rule() -> None:
    """Every rule that an error about a kind may carry stands in docs/kinds.md."""
    root = Path(__file__).resolve().parents[2]
    page = (root / "docs" / "kinds.md").read_text(encoding="utf-8")
    code = (root / "src" / "mcp_envelope" / "core" / "kind.py").read_text(encoding="utf-8")
    rules = set(re.findall(r'"(kind/[a-z-]+)"', code))
    assert len(rules) > 5
    assert not {rule for rule in rules if f"`{rule}`" not in page}

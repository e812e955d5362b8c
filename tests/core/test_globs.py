"""Globs: an index over many patterns must find what trying each of them would find."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_envelope.core.globs import Globs


def indexed(*globs: str) -> Globs:
    """An index whose labels are the globs themselves."""
    return Globs({glob: glob for glob in globs})


def plainly_fits(glob: str, text: str) -> bool:
    """Whether one glob matches, by the set of places that its beginning can reach."""
    reach = {0}
    for char in glob:
        if char == "*":
            reach = set(range(min(reach), len(text) + 1)) if reach else set()
        else:
            reach = {at + 1 for at in reach if at < len(text) and text[at] == char}
    return len(text) in reach


def test_a_text_finds_the_globs_above_its_nearest_neighbour() -> None:
    """What sorts between a text and its glob hides nothing, however deep literals are nested."""
    globs = indexed("a*", "ab*x", "abc*x", "abd*", "b*")
    assert globs.find("abca") == "a*"
    assert globs.find("abcx") == "abc*x"
    assert globs.find("abdx") == "abd*"
    assert globs.find("c") is None
    assert indexed("a*", "ab*x").find("az") == "a*"
    assert indexed("*", "a*x", "b*x").find("bz") == "*"


def test_the_same_holds_for_ends() -> None:
    """Literals behind the last `*` may be nested too."""
    globs = indexed("*a", "*x*ba", "*x*cba")
    assert globs.find("cba") == "*a"
    assert globs.find("xcba") == "*x*cba"
    assert indexed("*xy*a", "*xyz*ba", "*c*bba").find("xy-bba") == "*xy*a"


def test_both_ends_and_the_middle_need_room_of_their_own() -> None:
    """The text before the first `*`, behind the last, and the pieces between never overlap."""
    assert indexed("aba*aba").find("ababa") is None
    assert indexed("a*b*b").find("ab") is None
    assert indexed("*ab*ba*").find("aba") is None
    assert indexed("*ab*ba*").find("abba") == "*ab*ba*"
    assert indexed("*a*").find("a") == "*a*"
    assert indexed("*").find("") == "*"


def test_what_is_found_does_not_depend_on_the_order() -> None:
    """Of several globs that match, it is always the same one."""
    names = ["*a*", "*ab*", "*b*", "*a*b*"]
    assert indexed(*names).find("xaby") == indexed(*reversed(names)).find("xaby")


def test_no_globs_find_nothing() -> None:
    """An empty index answers too."""
    assert indexed().find("a") is None


pieces = st.sampled_from(["", "a", "b", "ab", "ba", "aa", "aab", "c"])
# Two stars side by side are no glob: only the pieces at the ends may be empty.
one_glob = st.tuples(pieces, st.lists(pieces.filter(bool), max_size=3), pieces).map(
    lambda parts: "*".join([parts[0], *parts[1], parts[2]])
)


@pytest.mark.parametrize("letters", ["ab", "abc"])
@given(data=st.data(), globs=st.sets(one_glob, max_size=30))
def test_the_index_agrees_with_trying_each(
    letters: str, data: st.DataObject, globs: set[str]
) -> None:
    """The index finds a label exactly where one of the globs matches, and of such a one."""
    index = indexed(*globs)
    for text in data.draw(st.lists(st.text(letters, max_size=9), min_size=5, max_size=10)):
        fitting = {glob for glob in globs if plainly_fits(glob, text)}
        found = index.find(text)
        assert (found in fitting) if fitting else found is None


def test_the_index_agrees_on_every_small_case() -> None:
    """All pairs of short globs over all short texts, without chance."""
    small = ["a*", "ab*", "*a", "*ba", "a*b", "ab*a", "*a*", "*ab*", "a*b*a", "*b*a", "*aa*b*"]
    texts = [""]
    for _ in range(5):
        texts += [text + letter for text in texts for letter in "ab"]
    for one in small:
        for other in small:
            index = indexed(one, other)
            for text in set(texts):
                fits = plainly_fits(one, text) or plainly_fits(other, text)
                assert (index.find(text) is not None) is fits

"""Matches paths of modules with the patterns of a pattern_dict.

A config may come from anyone, and re takes years for some patterns. So this reads only what the
program df11-convert reads (internal/python/regex.go), and follows all ways to match at once.
"""

import re

MAX_BYTES = 8 << 10
MAX_WALKS = 1 << 20  # ways in which a loader that uses re may have to try a pattern

PUNCTUATION = r"[!-/:-@\[-`{-~]"
ELEMENT = re.compile(
    r"[^\\.\[\](){}|*+?^$]"  # a character
    rf"|\\{PUNCTUATION}|\\d|\."
    # a class of characters, ranges and digits
    rf"|\[\^?-?(?:[A-Za-z0-9_.](?:-[A-Za-z0-9_.])?|\\{PUNCTUATION}|\\d)+-?\]"
    r"|\((?:\?:|\?P<[A-Za-z_][A-Za-z0-9_]*>)?(?!\?)|\)|\|"  # groups and alternatives
    r"|[*+?]\??",  # a quantifier, greedy or lazy
    re.ASCII,
)


class Pattern:
    """A pattern that matches whole paths. A bad one is a ValueError."""

    def __init__(self, text: str):
        if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES} bytes")
        if text.endswith(r"\d++"):  # of a published dict; there, \d+ matches the same paths
            text = text[:-1]
        try:
            groups = parse(text)
            re.compile(text)  # such as ranges without an end
        except (re.error, RecursionError, OverflowError) as e:
            raise ValueError(f"it's no regular expression: {e}") from e
        self.branches = groups
        if self.matches(""):
            raise ValueError("it matches the empty path, which is the whole model")

    def matches(self, path: str) -> bool:
        return len(path) in ends(self.branches, path, {0})


def parse(text: str) -> list:
    """Returns the branches of a pattern: lists of parts, each with its quantifier or "". A part is a
    compiled element, or the branches of a group.
    """
    open_groups: list[list] = [[[]]]
    done, branches, last = 1, 1, ""  # as in regex.go
    at = 0
    while at < len(text):
        found = ELEMENT.match(text, at)
        if found is None:
            raise ValueError(
                f"the construct at {text[at : at + 20]!r} isn't supported; patterns consist of "
                "characters, \\., \\d, classes, groups, |, *, + and ?"
            )
        element, at = found.group(), found.end()
        branch = open_groups[-1][-1]
        if element == "|":
            branches += 1
            open_groups[-1].append([])
        elif element[0] in "()":
            done, branches = done * branches, 1
            if element[0] == "(":
                open_groups.append([[]])
            elif len(open_groups) == 1:
                raise re.error("unbalanced parenthesis")
            else:
                group = open_groups.pop()
                open_groups[-1][-1].append((group, ""))
        elif element[0] in "*+?":
            if not branch or branch[-1][1]:
                raise re.error("nothing to repeat")
            done *= 2 if element[0] == "?" else 32
            if element[0] != "?" and last == ")":
                done = MAX_WALKS + 1
            branch[-1] = (branch[-1][0], element[0])
        else:
            branch.append((re.compile(element), ""))
        if done * branches > MAX_WALKS:
            raise ValueError(
                "it could take very long to match: repeat no group, and use fewer of |, *, + and ?"
            )
        last = element
    if len(open_groups) > 1:
        raise re.error("missing )")
    return open_groups[0]


def ends(branches: list, path: str, starts: set) -> set:
    """Returns where in path a match of one of the branches may end that begins at one of starts."""
    found = set()
    for branch in branches:
        at = starts
        for part, quantifier in branch:
            if isinstance(part, list):
                after = ends(part, path, at)
            else:
                after = one(part, path, at)
                more = after if quantifier in ("*", "+") else set()
                while more:
                    more = one(part, path, more) - after
                    after = after | more
            at = after | at if quantifier in ("*", "?") else after
            if not at:
                break
        found |= at
    return found


def one(element: re.Pattern, path: str, starts: set) -> set:
    return {i + 1 for i in starts if element.match(path, i)}

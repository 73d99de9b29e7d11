"""Finds the folder of a model: a local one, or a repo of the Hub in its cache, downloaded if need
be.
"""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Callable, Optional

from .files import DF11Error

# OPTIONS are those of huggingface_hub that a caller may give.
OPTIONS = ("revision", "token", "cache_dir", "local_files_only")


def find(
    name: str, check: Callable[[Path], None], subfolder: Optional[str] = None, **options
) -> Path:
    """Returns a folder: name itself, or else the repo of that name. check gets it before its
    weights are downloaded.

    options are snapshot_download's.
    """
    folder = Path(name)
    if not folder.is_dir():
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", str(name)):
            raise DF11Error(f"{name}: no such folder, and not the name of a repo")
        below = f"{subfolder}/" if subfolder else ""
        download(
            str(name), lambda top: check(top / below), allow_patterns=f"{below}*.json", **options
        )
        folder = download(str(name), allow_patterns=f"{below}*", **options)
    folder = folder / subfolder if subfolder else folder
    check(folder)
    return folder


def configs(name: str, **options) -> Path:
    """Returns a folder, or for a repo one in the cache with its JSON and Python files."""
    if Path(name).is_dir():
        return Path(name)
    return download(str(name), allow_patterns=["*.json", "*.py", "README.md"], **options)


def download(name: str, check: Optional[Callable[[Path], None]] = None, **options) -> Path:
    """Downloads files of a repo, and returns its folder in the cache."""
    from huggingface_hub import snapshot_download

    with explained(name, options):
        folder = Path(snapshot_download(name, **options))
    if check:
        check(folder)
    return folder


@contextlib.contextmanager
def explained(name: str, options: dict) -> Iterator[None]:
    """Turns the errors of huggingface_hub into one sentence each."""
    from huggingface_hub import constants, errors

    try:
        yield
    except errors.GatedRepoError as e:
        raise DF11Error(
            f"{name} is gated: accept its terms at {constants.ENDPOINT}/{name}, then log in with "
            "`hf auth login`"
        ) from e
    except errors.RepositoryNotFoundError as e:
        raise DF11Error(
            f"{name}: no such folder, and no such repo, or it is private: log in with `hf auth "
            "login`"
        ) from e
    except errors.RevisionNotFoundError as e:
        raise DF11Error(f"{name} has no revision {options['revision']}") from e
    except (errors.LocalEntryNotFoundError, errors.HfHubHTTPError) as e:
        if constants.HF_HUB_OFFLINE or options.get("local_files_only"):
            raise DF11Error(
                f"{name} isn't in the cache; without HF_HUB_OFFLINE and local_files_only, it's "
                "downloaded"
            ) from e
        cause = e.__cause__ or e
        why = getattr(cause, "server_message", None) or str(cause) or type(cause).__name__
        raise DF11Error(
            f"{name} can't be downloaded from {constants.ENDPOINT}: {why.splitlines()[0]}"
        ) from e

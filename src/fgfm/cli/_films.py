"""Generate a table of films: texts, dates, categories and numbers that predict genres."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._utils.optional import import_optional

# Who, deed and object of the sentences of each genre, and objects that only hint at it.
_WORDS = {
    "adventure": "captain explorer smuggler pilot/crosses maps survives reaches/"
    "desert treasure island jungle/river storm horse",
    "comedy": "waiter cousin landlord bride/imitates confuses invites forgets/"
    "wedding party parrot holiday/dinner hotel hat",
    "crime": "thief smuggler detective banker/robs betrays steals blackmails/"
    "loot jury prison evidence/bank diamond gun",
    "drama": "mother widow soldier farmer/loses forgives leaves raises/"
    "farm war illness debt/son father work",
    "fantasy": "wizard dragon knight ghost/enchants summons awakens rescues/"
    "kingdom spell prophecy throne/castle sword crown",
    "horror": "ghost vampire stranger monster/haunts devours stalks awakens/"
    "cellar grave blood scream/night corpse axe",
    "mystery": "detective stranger librarian duchess/suspects follows deciphers hides/"
    "clue alibi mansion evidence/secret key diary",
    "romance": "bride painter violinist lover/kisses marries misses leaves/"
    "heart rival dance promise/letter rose summer",
}
Floats = npt.NDArray[np.float64]
GENRES = tuple(_WORDS)
_EVERYDAY = (
    "teacher neighbour student driver brother sister",
    "meets visits helps watches remembers calls",
    "friend street town school train house garden market",
)
_MOODS = "silent golden last hidden broken red distant second lost quiet strange wild"
_PLACES = "Lisbon Oslo Kyoto Lima Accra Cork Turin Perth Quebec Izmir"
_FIRST = ["Ada", "Bruno", "Chen", "Dalia", "Emil"]
_LAST = ["Okafor", "Lindqvist", "Moreau", "Tanaka", "Silva", "Novak", "Brandt", "Castellano"]
_FIRST_DAY = datetime.date(1990, 1, 1)
_DAYS = 12_000
_UNKNOWN, _MISSING = 0.15, 0.03  # shares of unknown plots, and of missing numbers
_ONLY_HINTED, _STRAY = 0.12, 0.16  # shares of genres with no more than a hint, of others with one

# Share of films whose main genre is the row that have the column too, in the order of GENRES.
_TOGETHER = np.array(
    [
        [0.00, 0.12, 0.12, 0.16, 0.36, 0.04, 0.08, 0.12],
        [0.12, 0.00, 0.12, 0.20, 0.08, 0.04, 0.04, 0.40],
        [0.12, 0.12, 0.00, 0.36, 0.02, 0.08, 0.40, 0.04],
        [0.08, 0.12, 0.16, 0.00, 0.04, 0.04, 0.08, 0.36],
        [0.44, 0.16, 0.02, 0.12, 0.00, 0.20, 0.08, 0.16],
        [0.04, 0.08, 0.12, 0.12, 0.24, 0.00, 0.36, 0.04],
        [0.08, 0.08, 0.44, 0.24, 0.08, 0.24, 0.00, 0.08],
        [0.08, 0.32, 0.04, 0.44, 0.08, 0.02, 0.04, 0.00],
    ]
)
_MINUTES = np.array([12.0, -10.0, 5.0, 14.0, 10.0, -12.0, 2.0, 0.0])  # above 105, by main genre
_BUDGET = np.array([2.2, 0.9, 1.2, 0.8, 2.4, 0.6, 1.0, 0.7])  # typical millions / 10


def make_films(n: int = 1000, random_state: int = 0) -> Any:
    """Return a table of films.

    A plot has sentences on the genres of the film, or no more than a hint, and some hints at other
    genres; one in seven plots is not known. Half of the titles have a word of the main genre. A
    director prefers some main genres; length and budget depend on the main genre. Three percent of
    the lengths and budgets are missing.

    The columns are ``id``, ``title``, ``released`` (a date), ``director``, ``plot``, ``minutes``,
    ``budget`` (millions) and ``genres``, names of `GENRES` separated by ";". The same seed returns
    the same table.

    Examples
    --------
    >>> film = make_films(3).iloc[0]
    >>> film["title"], film["genres"]
    ('The Strange Street of Oslo', 'adventure;fantasy')
    """
    pandas = import_optional("pandas", "making a table of films", "cli")
    rng = np.random.default_rng(random_state)
    taste = rng.dirichlet(np.ones(len(GENRES)), size=len(_FIRST) * len(_LAST))
    return pandas.DataFrame([{"id": f"f{k + 1:04d}"} | _film(rng, taste) for k in range(n)])


def _film(rng: np.random.Generator, taste: Floats) -> dict[str, Any]:
    """Return one film; ``taste[d]`` is the distribution of the main genres of a director."""
    director = int(rng.integers(len(taste)))
    main = int(rng.choice(len(GENRES), p=taste[director]))
    genres = rng.random(len(GENRES)) < _TOGETHER[main]
    genres[main] = True
    released = _FIRST_DAY + datetime.timedelta(days=int(rng.integers(_DAYS)))
    minutes = 105.0 + _MINUTES[main] + 12.0 * rng.standard_normal()
    budget = 10.0 * _BUDGET[main] * np.exp(0.6 * rng.standard_normal())
    known = rng.random(2) >= _MISSING
    return {
        "title": _title(rng, _words(GENRES[main]) if rng.random() < 0.5 else _EVERYDAY),
        "released": released.isoformat(),
        "director": f"{_FIRST[director % len(_FIRST)]} {_LAST[director // len(_FIRST)]}",
        "plot": _plot(rng, genres),
        "minutes": f"{minutes:.0f}" if known[0] else None,
        "budget": f"{budget:.1f}" if known[1] else None,
        "genres": ";".join(name for name, has in zip(GENRES, genres, strict=True) if has),
    }


def _title(rng: np.random.Generator, words: tuple[str, ...]) -> str:
    mood, what = _pick(rng, _MOODS).title(), _pick(rng, words[2]).title()
    return f"The {mood} {what} of {_pick(rng, _PLACES)}"


def _plot(rng: np.random.Generator, genres: npt.NDArray[np.bool_]) -> str:
    """Return sentences in random order."""
    if rng.random() < _UNKNOWN:
        return "The plot is not known yet."
    words: list[tuple[str, ...]] = [_EVERYDAY]
    for name, has in zip(GENRES, genres, strict=True):
        *clear, hints = _words(name)
        if rng.random() < (_ONLY_HINTED if has else _STRAY):
            words.append((*_EVERYDAY[:2], hints))
        elif has:
            words += [tuple(clear)] * int(rng.integers(2, 5))
    return " ".join(_sentence(rng, words[k]) for k in rng.permutation(len(words)))


def _sentence(rng: np.random.Generator, words: tuple[str, ...]) -> str:
    who, deed, what = (_pick(rng, choices) for choices in words)
    article = "An" if who[0] in "aeiou" else "A"
    place = f" in {_pick(rng, _PLACES)}" if rng.random() < 0.3 else ""
    return f"{article} {who} {deed} the {what}{place}."


def _words(genre: str) -> tuple[str, ...]:
    return tuple(_WORDS[genre].split("/"))


def _pick(rng: np.random.Generator, words: str) -> str:
    choices = words.split()
    return choices[int(rng.integers(len(choices)))]

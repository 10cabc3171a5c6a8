r"""Generates the mailbox: 1,000 mail-like messages of about 3 kB, equal byte for byte everywhere.

Format of the file, made to be read with a few lines of JavaScript or C:

* UTF-8, records separated by the byte 0x1E, the fields of a record by 0x1F. No escaping: no field holds
  either byte, nor a NUL. No separator after the last record, no final newline.
* The first record is a header with the names of the fields, the following `MESSAGES` records are messages::

      id       1 to 1000, ascending, in the order of the dates (decimal)
      mailbox  one of `MAILBOXES`; each holds exactly a quarter of the messages, interleaved
      uid      number within the mailbox, from 1, without gaps (decimal)
      date     seconds since 1970-01-01 UTC, strictly ascending, within `SPAN_DAYS` days before `NEWEST`
      subject  20 to 60 characters, ASCII
      sender   ``Name Surname <name.surname@host.example>``, ASCII
      flags    empty, or IMAP flags separated by a space
      size     length of the body in bytes (decimal)
      body     2,880 to 3,200 bytes; one in eight holds accented letters, the rest is ASCII

Each mailbox has about 125 messages younger than 30 days counted from `NEWEST`, more than the 50 of the
published query. The generator is splitmix64 (Steele, Lea, Flood 2014): Python's own `random` promises the
same sequence for few of its methods, this one is a dozen lines and the same in every language.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

RECORD_SEPARATOR = "\x1e"
FIELD_SEPARATOR = "\x1f"
FIELDS = ("id", "mailbox", "uid", "date", "subject", "sender", "flags", "size", "body")
MESSAGES = 1_000
MAILBOXES = ("INBOX", "Archive", "Sent", "Newsletters")
NEWEST = 1_763_078_400
"""2025-11-14 00:00:00 UTC, the day of the published figures; "the last 30 days" count from here."""
SPAN_DAYS = 60
SIZE_MIN = 2_880
SIZE_MAX = 3_200

_MASK = (1 << 64) - 1
_WORDS = """
account agenda answer archive attached balance because before between billing booking budget calendar change
client comment company confirm contract copy customer deadline delivery details discount document draft
estimate evening expected feedback final follow forward friday greetings holiday invoice issue kindly later
letter manager meeting message monday morning number office offer order payment people please project
question receipt regards release reminder report request schedule server
"""
_ACCENTED = """
café crème déjà élève façade fête garçon hôtel île jalapeño kärnten löwe mañana niño noël piñata quête résumé
señor täglich
"""
_NAMES = """
Ada Alan Barbara Claude Dennis Donald Edsger Frances Grace Hedy John Katherine Ken Linus Margaret Radia
"""
_SURNAMES = """
Allen Dijkstra Hamilton Hopper Johnson Kernighan Knuth Lamarr Liskov Lovelace Perlman Ritchie Shannon Thompson
Torvalds Turing
"""
_FLAG_SETS = ("", "\\Seen", "\\Seen", "\\Seen \\Answered", "\\Flagged", "\\Draft", "\\Seen \\Flagged")


class SplitMix64:
    """A 64-bit generator with one word of state; equal seeds give equal sequences in any language."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def next(self) -> int:
        """Return the next value, 0 to 2**64 - 1."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        value = self._state
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
        return value ^ (value >> 31)

    def below(self, bound: int) -> int:
        """Return a value from 0 to `bound` - 1; the bias of a remainder is of no matter for text."""
        return self.next() % bound


def write_mailbox(path: Path, *, seed: int = 1) -> str:
    """Write the data file for `seed` to `path`, at once and whole; return the sha256 of its bytes (hex)."""
    content = mailbox_bytes(seed=seed)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_bytes(content)
    partial.replace(path)
    return hashlib.sha256(content).hexdigest()


def mailbox_bytes(*, seed: int = 1) -> bytes:
    """Return the content of the data file for `seed`, about 3.1 MB."""
    records = [FIELDS, *_messages(SplitMix64(seed))]
    return RECORD_SEPARATOR.join(FIELD_SEPARATOR.join(record) for record in records).encode()


def _messages(random: SplitMix64) -> Iterator[tuple[str, ...]]:
    uids = dict.fromkeys(MAILBOXES, 0)
    order: list[str] = []
    for number in range(1, MESSAGES + 1):
        if not order:
            order = _shuffled(random, MAILBOXES)
        mailbox = order.pop()
        uids[mailbox] += 1
        body = _body(random, accented=number % 8 == 0)
        yield (
            str(number),
            mailbox,
            str(uids[mailbox]),
            str(_date(random, number)),
            _subject(random),
            _sender(random),
            _pick(random, _FLAG_SETS),
            str(len(body.encode())),
            body,
        )


def _shuffled(random: SplitMix64, values: Sequence[str]) -> list[str]:
    result = list(values)
    for last in range(len(result) - 1, 0, -1):
        other = random.below(last + 1)
        result[last], result[other] = result[other], result[last]
    return result


def _date(random: SplitMix64, number: int) -> int:
    """One message a step, anywhere within it: no two dates are equal, so no order is left to chance."""
    step = SPAN_DAYS * 86_400 // MESSAGES
    return NEWEST - (MESSAGES - number) * step - random.below(step)


def _subject(random: SplitMix64) -> str:
    text = " ".join(_words(random, _WORDS.split(), 12)).capitalize()
    return text[: 20 + random.below(41)].rstrip().ljust(20, ".")


def _sender(random: SplitMix64) -> str:
    name = _pick(random, _NAMES.split())
    surname = _pick(random, _SURNAMES.split())
    return f"{name} {surname} <{name.lower()}.{surname.lower()}@host{random.below(40)}.example>"


def _body(random: SplitMix64, *, accented: bool) -> str:
    vocabulary = [*_WORDS.split()[20:], *_ACCENTED.split()] if accented else _WORDS.split()
    size = SIZE_MIN + random.below(SIZE_MAX - SIZE_MIN + 1)
    lines: list[str] = []
    length = 0
    while length < size:
        line = " ".join(_words(random, vocabulary, 10))
        lines.append(line)
        length += len(line) + 2
    # Cut by bytes, and never inside a letter: accented ones take two.
    return "\r\n".join(lines).encode()[:size].decode(errors="ignore")


def _pick(random: SplitMix64, values: Sequence[str]) -> str:
    return values[random.below(len(values))]


def _words(random: SplitMix64, vocabulary: Sequence[str], count: int) -> list[str]:
    """Draw words, ten from one number of the generator (6 bits each): the vocabulary has 64 words."""
    words: list[str] = []
    while len(words) < count:
        bits = random.next()
        words.extend(vocabulary[(bits >> shift) & 63] for shift in range(0, 60, 6))
    return words[:count]

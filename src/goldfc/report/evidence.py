"""What goldfc claims of security and privacy, each claim with the test or the measured figure that shows it.

Tests and figures are named by their place in the source; a test checks that each is there, and says the same.
"""

from dataclasses import dataclass
from typing import NamedTuple

ATTACKS = "benchmarks/attacks/README.md"
DESCRIBED = "docs/privacy.md"
# Tests that more than one place names.
NOTHING_ELSE = "tests/server/test_folder.py::test_a_site_must_tell_what_was_agreed_and_nothing_else"
FOR_OWNER_ALONE = "tests/site/test_send.py::test_labels_are_for_their_owner_alone"
SEALED_HIDES = "tests/message/test_envelope.py::test_nothing_of_the_content_shows"
SUMMARIES_STAY = "tests/server/test_history.py::test_a_late_site_sends_one_file_and_nobody_else_does_anything"
SUM_OF_DEVICES = "tests/server/test_merge.py::test_gateways_of_gateways_see_no_device_and_count_all_of_them"
NAMES_OF_LEVELS = ("plain", "suppressed", "private")
ALL, HIDES_NAMES, ROUNDED, NOISY = NAMES_OF_LEVELS, NAMES_OF_LEVELS[1:], NAMES_OF_LEVELS[1:2], NAMES_OF_LEVELS[2:]


class Measured(NamedTuple):
    """A figure of `ATTACKS`, under the name that it has there."""

    name: str
    meaning: str
    figure: str


# The level `suppressed`, on fifteen public tables with 20 to 3 000 rows a site.
MEASURED = (
    Measured("rows restored", "Rows that came back from a message", "0"),
    Measured(
        "best membership AUC, mean",
        "Somebody who has a row guesses whether it is in the message: area under the curve (0.5 is chance, 1 is "
        "certain), in the mean",
        "0.623",
    ),
    Measured("its worst", "The same at worst", "0.701 (EP, 300 rows)"),
    Measured(
        "members found at 1 % false alarms, mean",
        "Share of the members who are found when one in a hundred others is taken for one",
        "0.036",
    ),
    Measured(
        "a column of members better known",
        "By how much one column of a member, all others known, is guessed better than that of somebody who is not in "
        "it, in standard deviations",
        "0.053",
    ),
    Measured(
        "the row that came, least error",
        "How well a row is known that came between two messages: least error in standard deviations; such a second "
        "message is refused",
        "0.00 (digits, 20 categories, 20 rows; 0.00 without any message)",
    ),
    Measured(
        "one of two sites against the other, mean AUC",
        "One of only two sites, which subtracts its own part, guesses who is in the other's: area under the curve",
        "0.580",
    ),
    Measured(
        "audit within .05 of the best attack",
        "How often a site's own audit shows what the best attack reaches, within .05",
        "84%",
    ),
    Measured("audit below it by more than .1", "How often it shows less by more than .1", "0.0%"),
    Measured(
        "price on the ten splits",
        "What the protection costs, in agreement with the truth (ARI): ten data sets",
        "0.030",
    ),
    Measured("price on families, sites of 500 rows", "The same on thirty families of generated data", "0.025"),
)


@dataclass(frozen=True)
class Claim:
    """A sentence, what shows it, and where it holds."""

    sentence: str
    shown_by: tuple[str, ...]
    levels: tuple[str, ...] = ALL
    sealed: bool = False  # whether it holds only where messages are sealed


CLAIMS = (
    Claim(
        "No row, no id, no name of a file and no path is in a message.",
        ("tests/site/test_send.py::test_no_byte_of_a_row_or_a_path_is_in_the_message",),
        ROUNDED,
    ),
    Claim(
        "A message tells what was agreed on and nothing else; the server refuses one that tells more.",
        (NOTHING_ELSE,),
    ),
    Claim(
        "No mean is a row, and no micro-cluster has fewer people than agreed, however many rows each has.",
        (
            "tests/site/test_privacy.py::test_no_centroid_is_a_row_and_no_micro_cluster_is_small",
            "tests/site/test_privacy.py::test_every_micro_cluster_has_enough_different_people",
        ),
        ROUNDED,
    ),
    Claim(
        "Nothing is told more exactly than it is known: means are rounded to steps as wide as their standard error.",
        (
            "tests/site/test_privacy.py::test_every_told_mean_is_a_multiple_of_its_step",
            "tests/site/test_privacy.py::test_one_row_more_or_less_moves_a_mean_by_less_than_about_its_step",
        ),
        ROUNDED,
    ),
    Claim(
        "Numbers of rows are told in multiples of five.",
        ("tests/site/test_privacy.py::test_counts_are_multiples_of_five_and_shares_do_not_tell_the_exact_size",),
        ROUNDED,
    ),
    Claim(
        "A site tells the less, the fewer people it has; with fewer than twelve nothing leaves.",
        (
            "tests/site/test_privacy.py::test_what_a_site_tells_shrinks_with_its_people",
            "tests/site/test_membership.py::test_with_fewer_than_twelve_people_nothing_can_be_measured_and_nothing_leaves",
        ),
        ROUNDED,
    ),
    Claim(
        "Before a message is written, it is attacked with the rows at hand; if that succeeds too well, nothing is "
        "written unless a person accepts the risk.",
        (
            "tests/site/test_membership.py::test_what_gives_more_away_than_the_limits_is_refused",
            "tests/site/test_send.py::test_a_failed_audit_writes_nothing_unless_the_risk_is_accepted",
        ),
        ROUNDED,
    ),
    Claim(
        "A message by which a few people could be told from an earlier one is refused, and so are too many of the "
        "same people.",
        (
            "tests/site/test_send.py::test_a_few_people_more_or_less_than_last_time_are_refused",
            "tests/site/test_ledger.py::test_rounds_of_the_same_people_are_counted_and_end",
        ),
        ROUNDED,
    ),
    Claim(
        "A column that is marked sensitive is never told as all or none.",
        (
            "tests/site/test_privacy.py::test_a_sensitive_yes_or_no_is_never_told_as_all_or_none",
            "tests/site/test_privacy.py::test_levels_of_a_sensitive_category_are_never_told_as_all_or_none",
        ),
        ROUNDED,
    ),
    Claim(
        "One row, or one person, changes what noise is added to by a bounded amount, and there is no other way to "
        "the rows.",
        (
            "tests/site/private/test_replay.py::test_a_row_changes_every_release_by_one_bounded_vector",
            "tests/site/private/test_replay.py::test_rows_are_seen_in_no_other_way",
        ),
        NOISY,
    ),
    Claim(
        "The noise has exactly the distribution that the proof needs, and what is promised is never less than what "
        "is paid.",
        (
            "tests/site/private/test_noise.py::test_draws_have_the_probabilities_of_the_discrete_gaussian",
            "tests/site/private/test_noise.py::test_what_was_bought_is_never_more_than_was_promised",
        ),
        NOISY,
    ),
    Claim(
        "What would overdraw a site's budget of a year is not made; the same request has the same answer and costs "
        "once.",
        (
            "tests/site/private/test_private_messages.py::test_what_would_overdraw_the_budget_of_a_year_is_not_made",
            "tests/site/private/test_private_messages.py::test_the_same_request_has_the_same_answer_and_costs_once",
        ),
        NOISY,
    ),
    Claim(
        "A site's own policy only makes stricter what was agreed on, and is never taken from the federation.",
        (
            "tests/site/test_policy.py::test_the_larger_smallest_holds",
            "tests/site/test_policy.py::test_a_policy_comes_from_beside_the_data_and_not_from_where_one_stands",
        ),
    ),
    Claim(
        "A site sends nothing to a federation that is content with fewer sites than its policy wants.",
        ("tests/site/test_policy.py::test_fewer_sites_than_the_policy_wants_are_refused",),
    ),
    Claim(
        "What stays at a site, and its labels, are for their owner alone (on Windows: as their folder is).",
        (
            "tests/site/test_ledger.py::test_everything_that_stays_is_private",
            "tests/site/test_parts.py::test_what_is_kept_is_for_its_owner_alone_bounded_and_forgotten",
            FOR_OWNER_ALONE,
        ),
    ),
    Claim(
        "A message runs no code: what is not of the one format is refused and never unpacked.",
        (
            "tests/message/test_wire.py::test_files_of_another_kind_are_refused_and_never_unpacked",
            "tests/test_fuzz.py::test_no_mutant_of_a_message_breaks_the_law",
            "benchmarks/fuzz/README.md",
        ),
    ),
    Claim(
        "No message that is put into the server's folder can stop the others or push one out.",
        (
            "tests/server/test_folder.py::test_no_name_in_the_inbox_can_stop_the_others",
            "tests/server/test_folder.py::test_of_two_different_ones_the_first_is_kept_and_the_conflict_reported",
        ),
    ),
    Claim(
        "What is sealed shows nothing of its content, and only the receiver can open it.",
        (
            SEALED_HIDES,
            "tests/message/test_envelope.py::test_another_receiver_cannot_open_it",
        ),
        sealed=True,
    ),
    Claim(
        "Nobody can speak for another site, or use a message for another round, site or receiver.",
        (
            "tests/server/test_folder.py::test_what_is_not_signed_by_whom_it_speaks_for_is_rejected",
            "tests/message/test_envelope.py::test_a_message_for_another_purpose_is_refused",
        ),
        sealed=True,
    ),
    Claim(
        "A private key that others can read is refused (not on Windows), and no error shows one.",
        (
            "tests/message/test_envelope.py::test_a_private_key_that_others_can_read_is_refused",
            "tests/message/test_envelope.py::test_malformed_private_keys_are_refused_without_showing_them",
        ),
        sealed=True,
    ),
)

PLAINLY = "Nothing is hidden: a micro-cluster may be a single row, and its mean that row."
MEMBERS = (
    "Whether somebody is among the rows can be guessed a little better than by chance, mostly at small sites with "
    "many columns, and certainly by somebody who knows all other rows of the site."
)
# What is not protected, and the levels at which it is not.
WHAT_REMAINS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (PLAINLY, NAMES_OF_LEVELS[:1]),
    ("It is not differential privacy: no bound holds against every attacker.", ROUNDED),
    (MEMBERS, ROUNDED),
    (
        "Each further message of nearly the same rows tells more; how many there are is limited, not what they tell "
        "together.",
        ROUNDED,
    ),
    (
        "Of two groups, and then both with one person more, the one is not noticed: messages are compared in pairs.",
        ROUNDED,
    ),
    (
        "The guarantee is for each site's messages of 365 days, within the budget of its policy; over more years it "
        "adds up.",
        NOISY,
    ),
    ("Columns' names and agreed ranges, and that a site takes part, are not hidden.", ALL),
    ("What holds for a group holds for its members, whether they are in the rows or not.", ALL),
    (
        "The server sees where a site has many rows and where few, as exactly as the site tells; sealing keeps "
        "others from it, not the server.",
        ALL,
    ),
    (
        "Every site gets the model: a cluster of one micro-cluster shows its mean, and prototypes show "
        "micro-centroids of all sites.",
        ALL,
    ),
    ("A policy binds who means to obey it: whoever can change program, policy or ledger at a site is not bound.", ALL),
    ("A hostile site can still move the result within measured bounds (benchmarks/trust), and can invent rows.", ALL),
    ("Live, on Flower, whoever operates the SuperLink decides which code runs at the nodes, and must be trusted.", ALL),
)

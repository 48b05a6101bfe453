from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from featurestore import Drop, open_store
from featurestore.maintenance.validate import changed_examples
from featurestore.sql.functions import FUNCTIONS
from featurestore.tables.lookup import KeyLookup
from syntax import DependencyTree
from syntax.errors import SpecError
from syntax.examples import LabelSpec
from syntax.matrices import ancestor_mask, tree_depth, tree_distance
from syntax.trees.ud import DEPREL, UPOS

VIEWS = ("parses", "sentences", "words", "examples", "segments", "drops", "fingerprints")


@pytest.fixture
def parsed(store, records):
    store.parses.append(records)
    return store


@pytest.mark.parametrize("view", VIEWS)
def test_views_of_a_store_without_tables_are_empty(store, view) -> None:
    relation = store.sql(f"from {view}")
    assert relation.fetchall() == []
    assert len(relation.columns) > 2
    assert store.datasets() == []


def test_words_are_the_words_of_every_sentence(parsed, records) -> None:
    expected = [
        (record.key, number, word.id, word.form, word.upos, word.head, word.deprel)
        for record in records
        for number, sentence in enumerate(record.parse.sentences())
        for word in sentence.words
    ]
    query = "select key, sentence, id, form, upos, head, deprel from words"
    assert sorted(parsed.sql(query).fetchall()) == sorted(expected)
    outside = """
        select count(*) from words join parses using (key)
        where words.word_end not between 1 and len(text)
        or text[words.word_start + 1 : words.word_end] not like '%' || words.form || '%'
    """
    assert parsed.sql(outside).fetchall() == [(0,)]


def test_sentences_have_their_own_text_and_tree(parsed, records) -> None:
    expected = sorted(
        (record.key, number, record.parse.text[start:end])
        for record in records
        for number, (start, end) in enumerate(
            zip(record.parse.sentence_start, record.parse.sentence_end, strict=True)
        )
    )
    assert sorted(parsed.sql("select key, sentence, text from sentences").fetchall()) == expected
    for heads, deprels in parsed.sql("select head, deprel from sentences").fetchall():
        DependencyTree(heads, deprels)


def test_matrices_of_a_sentence_are_nested_lists(parsed) -> None:
    query = "select head, distance_matrix(head), depth_vector(head), ancestor_matrix(head)"
    for heads, distance, depth, ancestor in parsed.sql(f"{query} from sentences").fetchall():
        parents = [head - 1 for head in heads]
        assert distance == tree_distance(parents).tolist()
        assert depth == tree_depth(parents).tolist()
        assert ancestor == ancestor_mask(parents).tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("distance_matrix([-1, 0, 1])", "a head is -1"),
        ("depth_vector([2, null, 0])", "the head of word 2 is NULL; every word has one"),
        ("ancestor_matrix([null])", "the head of word 1 is NULL; every word has one"),
        ("depth_vector(head) from parses", "take them from the view sentences"),
        (r"vector('\x00\x01\x02'::blob)", "a blob of 3 bytes is no int32 vector"),
        (r"upos_tags('\x01\xFF'::blob)", "a blob of 2 bytes has a 255; the bytes of upos are 0 to"),
        (r"deprel_tags('\xFF'::blob)", "a blob of 1 bytes has a 255; the bytes of deprel are 0 to"),
    ],
)
def test_sql_functions_name_arguments_they_cannot_read(parsed, call, message) -> None:
    with pytest.raises(duckdb.Error, match=message):
        parsed.sql(f"select {call}").fetchall()


def test_segments_hold_decoded_vectors_and_matrices(filled, rows) -> None:
    found = filled.sql(
        """
        select example_id, segment, text, length, input_ids, head, word_ids, sentence_ids,
            upos, deprel, distance, depth, ancestor
        from segments order by seq, segment
        """
    ).fetchall()
    assert len(found) == 200
    for position, columns in enumerate(found):
        row, number = rows[position // 2], position % 2
        segment = row.segments[number]
        parents = segment.head
        distance = [
            [None if x == 255 else x for x in line] for line in tree_distance(parents).tolist()
        ]
        assert columns == (
            row.example_id,
            number,
            row.texts[number],
            len(segment),
            segment.input_ids.tolist(),
            segment.head.tolist(),
            segment.word_ids.tolist(),
            segment.sentence_ids.tolist(),
            [UPOS[tag] for tag in segment.upos],
            [DEPREL[tag] for tag in segment.deprel],
            distance,
            tree_depth(parents).tolist(),
            ancestor_mask(parents).tolist(),
        )


def test_matrices_that_are_not_stored_are_derived(store, make_handle, rows) -> None:
    columns = "distance, depth, ancestor"
    query = f"select {columns} from segments where dataset = ? order by seq, segment"
    bare = replace(make_handle(name="bare"), matrices=False)
    for handle in (bare, make_handle(name="whole")):
        store.features.append(handle, rows[:5])
    stored = "select count(distance), count(*) from examples group by dataset order by dataset"
    assert store.sql(stored).fetchall() == [(0, 5), (5, 5)]
    assert store.sql(query, ["bare"]).fetchall() == store.sql(query, ["whole"]).fetchall()


def test_stored_matrices_of_examples_are_those_of_their_segments(filled) -> None:
    query = """
        select count(*)
        from segments join examples using (dataset, tokenizer, split, lang, example_key)
        where stored_distance(examples.distance[segment + 1]) != segments.distance
        or stored_depth(examples.depth[segment + 1], length) != segments.depth
        or stored_ancestor(examples.ancestor[segment + 1]) != segments.ancestor
    """
    assert filled.sql(query).fetchall() == [(0,)]


def test_matrices_of_segments_are_made_only_for_queries_that_ask(store, handle, rows) -> None:
    """A cycle in the heads of a piece, which a query that derives a matrix of it reports."""
    head = rows[0].segments[0].head.copy()
    head[:2] = 1, 0
    broken = replace(rows[0].segments[0], head=head)
    row = replace(rows[0], segments=(broken, rows[0].segments[1]))
    store.features.append(replace(handle, matrices=False), [row])
    query = "select {} from segments where segment = 0"
    assert store.sql(query.format("head, length, text")).fetchall()[0][0] == head.tolist()
    with pytest.raises(duckdb.Error, match=r"never reaches a root|cycle"):
        store.sql(query.format("depth")).fetchall()


@pytest.mark.parametrize(
    "query",
    [
        "from read_csv('/etc/passwd')",
        "from read_text('/etc/passwd')",
        "from read_parquet('/tmp/*.parquet')",
        "from glob('/etc/*')",
        "from '/etc/passwd'",
    ],
)
def test_other_files_than_the_tables_cannot_be_read(parsed, query) -> None:
    with pytest.raises(duckdb.Error, match=r"disabled by configuration|does not exist"):
        parsed.sql(query).fetchall()


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("copy (select 1) to 'x.csv'", "COPY"),
        ("explain analyze copy (select 1) to 'x.csv'", "EXPLAIN"),
        ("attach 'x.db'", "ATTACH"),
        ("drop view parses", "DROP"),
        ("create table mine as select 1", "CREATE"),
        ("set memory_limit = '1GB'", "SET"),
        ("install httpfs", "LOAD"),
        ("select 1; select 2", "SELECT, SELECT"),
        ("-- nothing", "none"),
        ("explain analyze copy parses to 'mine.parquet'", "EXPLAIN"),
        ("explain (analyze) copy parses to 'mine.parquet'", "EXPLAIN"),
        ("explain/**/analyze copy parses to 'mine.parquet'", "EXPLAIN"),
        ("explain analyze create table mine as select 1", "EXPLAIN"),
        ("explain select 1; select 2", "EXPLAIN, SELECT"),
    ],
)
def test_a_query_is_one_select(parsed, tmp_path, monkeypatch, query, kinds) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(SpecError, match=f"read-only: .* statements came: {kinds}\\."):
        parsed.sql(query)
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "query",
    [
        "from parses;",
        "with few as (from words limit 3) from few -- that is all",
        "values (1), (2)",
        "describe parses",
        "summarize words",
        "pivot words on upos in ('NOUN', 'VERB') using count(*) group by lang",
        "explain from words",
        "explain(from words)",
        "explain select ' explain analyze copy' from words;",
        "EXPLAIN\nANALYZE with few as (from words limit 3) from few",
    ],
)
def test_statements_that_return_rows_are_queries(parsed, query) -> None:
    assert parsed.sql(query).fetchall()


def test_a_relation_is_as_locked_as_its_query(parsed, tmp_path) -> None:
    relation = parsed.sql("from parses")
    (file, *_) = (tmp_path / "store" / "parses").glob("*.parquet")
    before = file.read_bytes()
    for path in (tmp_path / "mine.parquet", file):
        with pytest.raises(duckdb.Error, match="disabled by configuration"):
            relation.write_parquet(str(path))
    assert file.read_bytes() == before


def test_show_tables_lists_only_the_views(filled, records) -> None:
    filled.parses.append(records[:3])
    filled.parses.append(records[:3])
    assert sorted(name for (name,) in filled.sql("show tables").fetchall()) == sorted(VIEWS)
    with pytest.raises(duckdb.Error, match='Did you mean "examples"'):
        filled.sql("from no_examples")


def test_segments_join_with_their_parses(filled, records) -> None:
    filled.parses.append(records)
    query = """
        select count(*), count(parses.key), bool_and(segments.text = parses.text)
        from segments left join parses on parse_key = key
    """
    assert filled.sql(query).fetchall() == [(200, 200, True)]


def test_segments_join_with_their_own_example_if_an_id_occurs_twice(store, handle, rows) -> None:
    other = replace(rows[1], example_id=rows[0].example_id)
    store.features.append(handle, [rows[0], other])
    query = """
        select count(*), bool_and(text = texts[1])
        from segments join examples using (dataset, tokenizer, split, lang, example_key)
        where segment = 0
    """
    assert store.sql(query).fetchall() == [(2, True)]


def test_examples_of_all_datasets_are_united(filled, make_handle, rows) -> None:
    filled.features.append(make_handle(name="more", split="2020", lang="no"), rows[:7])
    other = make_handle(name="unlabelled")
    bare = replace(other, spec=replace(other.spec, labels=()))
    filled.features.append(bare, [replace(row, labels={}) for row in rows[:2]])
    query = "select dataset, split, lang, count(*), count(label) from examples group by all"
    assert sorted(filled.sql(query).fetchall()) == [
        ("more", "2020", "no", 7, 7),
        ("pairs", "train", "en", 100, 100),
        ("unlabelled", "train", "en", 2, 0),
    ]


def test_labels_may_have_the_names_of_view_columns(store, handle, rows) -> None:
    names = [*("n", "length", "z", "a", "bounds", "segment", "text", "last_token", "rows", 'a "b"')]
    labels = tuple(LabelSpec(name, "string") for name in names)
    values = {name: f"value of {name}" for name in names}
    named = replace(handle, spec=replace(handle.spec, labels=labels))
    store.features.append(named, [replace(row, labels=values) for row in rows[:2]])
    found = store.sql("select text, length from segments order by seq, segment").fetchall()
    assert found == [
        (text, len(segment))
        for row in rows[:2]
        for text, segment in zip(row.texts, row.segments, strict=True)
    ]
    (example, _) = store.sql("from examples").df().to_dict("records")
    assert {name: example[name] for name in names} == values
    assert changed_examples(store) == []


def test_labels_that_differ_in_case_and_type_are_one_column_of_text(
    filled, make_handle, rows
) -> None:
    other = make_handle(name="more")
    spec = replace(other.spec, labels=(LabelSpec("SCORE", "tags", ("a",)),))
    filled.features.append(replace(other, spec=spec), [replace(rows[0], labels={"SCORE": None})])
    assert len(filled.sql("select score from examples").fetchall()) == 101


@pytest.mark.parametrize("view", ["parses", "examples"])
@pytest.mark.parametrize("comes", [True, False])
def test_a_repeat_that_comes_or_goes_meanwhile_is_shown_once(
    filled, handle, records, rows, monkeypatch, view, comes
) -> None:
    def repeat() -> None:
        with open_store(filled.uri) as other:
            other.parses.append(records)
            other.features.append(handle, rows)

    def compact() -> None:
        with open_store(filled.uri) as other:
            other.compact()

    judge = KeyLookup.has_repeats
    filled.parses.append(records)
    if comes:
        monkeypatch.setattr(KeyLookup, "has_repeats", lambda *its: (judge(*its), repeat())[0])
    else:
        repeat()
        monkeypatch.setattr(KeyLookup, "has_repeats", lambda *its: (compact(), judge(*its))[1])
    count = {"parses": 40, "examples": 100}[view]
    assert filled.sql(f"select count(*) from {view}").fetchall() == [(count,)]


def test_parameters_are_bound(parsed, records) -> None:
    query = "select text from parses where key = ?"
    assert parsed.sql(query, [records[0].key]).fetchall() == [(records[0].parse.text,)]
    named = "select text from parses where key = $key"
    assert parsed.sql(named, {"key": records[0].key}).fetchall() == [(records[0].parse.text,)]


def test_relation_is_a_snapshot_and_can_be_queried_further(parsed, make_record, parses) -> None:
    relation = parsed.sql("select key, lang from parses")
    parsed.parses.append([make_record(parses[0], 999)])
    assert relation.aggregate("count(*)").fetchall() == [(40,)]
    assert parsed.sql("select count(*) from parses").fetchall() == [(41,)]


@pytest.mark.parametrize("name", ["it's a store", "50% of #1", "v1*?", "Größe"])
def test_folders_with_any_name_can_be_used(tmp_path, filled, records, name) -> None:
    with open_store(tmp_path / name) as store:
        store.parses.append(records)
        assert store.sql("select count(*) from parses").fetchall() == [(40,)]
        assert len(store.parses.get_many([record.key for record in records])) == 40


def test_unknown_view_is_an_error(parsed) -> None:
    mine = parsed.sql("from parses").arrow()
    with pytest.raises(duckdb.Error, match="mine does not exist"):
        parsed.sql("from mine")
    assert mine is not None


@pytest.mark.slow
def test_a_script_that_keeps_a_relation_ends_quietly(parsed) -> None:
    script = (
        "import sys; from featurestore import open_store\n"
        "relation = open_store(sys.argv[1]).sql('select depth_vector(head) from sentences')\n"
        "print(len(relation.fetchall()))"
    )
    command = [sys.executable, "-c", script, parsed.uri]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("60", "")


DOCS = Path(__file__).parents[2] / "docs"


def test_the_manual_names_every_function_and_view_with_its_columns(filled) -> None:
    manual = (DOCS / "reference" / "store.md").read_text(encoding="utf-8")
    names = (*VIEWS, *(function.name for function in FUNCTIONS))
    assert [name for name in names if f"`{name}" not in manual] == []
    rows = dict(re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|$", manual, re.MULTILINE))
    for view in ("words", "drops", "fingerprints", "segments"):
        columns = filled.sql(f"from {view}").columns
        listed = " ".join(re.findall(r"`([^`]*)`", rows[view])).split()
        assert sorted(listed) == sorted(columns)


def test_the_examples_of_the_guide_run_and_are_right(filled, records) -> None:
    filled.parses.append(records)
    (block,) = re.findall(r"```sql\n(.*?)```", (DOCS / "stream.md").read_text("utf-8"), re.DOTALL)
    found = [filled.sql(query).fetchall() for query in block.split(";") if query.strip()]
    assert len(found) >= 6
    titles = re.findall(r"^-- (.*)", block, re.MULTILINE)
    depths, directions = (
        next(rows for title, rows in zip(titles, found, strict=True) if title.startswith(start))
        for start in ("how many sentences are how deep", "how often a dependent follows")
    )
    sentences = [sentence for record in records for sentence in record.parse.sentences()]
    expected = Counter(int(tree_depth(sentence.tree.parents).max()) for sentence in sentences)
    assert {depth: count for _, depth, count in depths} == expected
    subjects = [w for s in sentences for w in s.words if w.deprel == "nsubj"]
    (row,) = (row for row in directions if row[1] == "nsubj")
    assert row[2] == len(subjects)
    assert row[3] == round(sum(word.id > word.head for word in subjects) / len(subjects), 3)


def test_a_query_reads_only_the_tables_that_it_names(filled, records, caplog) -> None:
    filled.parses.append(records)
    for file in Path(filled.uri, "datasets").rglob("*.parquet"):
        os.truncate(file, 10)
    with open_store(filled.uri) as store:
        for query in ("select 1", "select count(*) from Words", "describe parses", "from drops"):
            assert store.sql(query).fetchall() is not None
        assert caplog.text == ""
        for query in ("from examples", "with words as (from segments) from words"):
            caplog.clear()
            assert store.sql(query).fetchall() == []
            assert caplog.text.count("25 rows are left out") == 4
        caplog.clear()
        with pytest.raises(duckdb.Error):
            store.sql("from exmples")  # all views, for a suggestion
        assert "left out" in caplog.text


@pytest.mark.parametrize("query", ["select count(*) from {}", "SELECT count() AS n FROM {} AS t;"])
@pytest.mark.parametrize("view", ["parses", "examples", "drops"])
def test_rows_are_counted_from_the_logs(filled, records, handle, rows, view, query) -> None:
    filled.parses.append(records[:9])
    drop = Drop("pairs", "t", "dev", "en", "job", "id", "0" * 32, "label", "it says why")
    filled.drops.append([drop])
    expected = len(filled.sql(f"from {view}"))
    for path in Path(filled.uri).rglob("*.parquet"):
        if view in str(path):
            path.rename(f"{path}.away")  # no file is read
    assert filled.sql(query.format(view)).fetchall() == [(expected,)]
    for path in Path(filled.uri).rglob("*.away"):
        path.rename(str(path).removesuffix(".away"))
    filled.parses.append(records[:9])
    filled.features.append(handle, rows[:3])
    assert filled.sql(query.format(view)).fetchall() == [(expected,)]  # repeated rows count once
    relation = filled.sql("select count(*) as n from parses where key < 'zz'")
    assert (relation.columns, relation.fetchall()) == (["n"], [(9,)])


def test_the_view_of_drops_has_their_columns(store) -> None:
    columns = ("pairs", "f" * 32, "train", "en", "job", "id", "", "deadline", "it's too slow")
    store.drops.append([Drop(*columns)])
    assert store.sql("from drops").fetchall() == [columns]

"""The structure of the package stays within its limits; CONTRIBUTING.md shows it as it is."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import structure  # noqa: E402

SCRIPTS = structure.sources()


def test_the_top_level_has_few_entries_in_few_layers():
    of_entries = structure.between_entries(structure.imports())
    heights = structure.layers(of_entries)
    assert 0 not in heights.values(), "a circle of imports between folders"
    assert len(of_entries) <= 15
    assert max(heights.values()) <= 10
    assert sum(map(len, of_entries.values())) <= 60


def test_doors_hold_no_code():
    known = structure.modules()
    for name in structure.DOORS:
        text = known[name].read_text()
        assert not structure.defined(text), f"{name or '__init__'} is no door"
        assert structure.defined(text + "\ndef a(): pass\n") == ["a"]


def test_no_modules_import_each_other():
    assert structure.circles(structure.imports()) == []
    assert structure.circles(structure.script_imports()) == []


def test_no_file_is_too_long():
    for limit, ending in ((500, ".py"), (400, ".js")):
        files = [path for path in SCRIPTS if path.suffix == ending]
        length, path = structure.longest(files)[0]
        assert length <= limit, path


def test_actions_are_taken_apart_in_one_place_and_in_one_by_kernels():
    modules = {site.rpartition(".")[0] for site in structure.decoding_sites()}
    assert modules == {"engine.rules", "engine.kernels.actions"}


def test_events_are_carried_out_in_one_place():
    assert structure.event_loops() == ["records.events.play_event"]


def test_the_table_of_layers_is_the_codes_own():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    table = page.partition("<!-- table: layers -->\n\n")[2].partition("\n<!-- end -->")[0]
    assert table == structure.layers_table(), "run `make tables`"


def test_a_circle_and_an_import_inside_a_function_are_seen(tmp_path):
    package = tmp_path / "carolus_env"
    (package / "a").mkdir(parents=True)
    (package / "__init__.py").write_text("from carolus_env.a import x\n")
    (package / "a" / "__init__.py").write_text("")
    (package / "a" / "x.py").write_text("from carolus_env import b\n")
    (package / "b.py").write_text("def f():\n    from carolus_env.a.x import y\n")
    found = structure.imports(tmp_path)
    assert found["a.x"] == {"b"} and found["b"] == {"a.x"}
    assert structure.circles(found) == [["a.x", "b"]]
    assert structure.layers(structure.between_entries(found))["a"] == 0

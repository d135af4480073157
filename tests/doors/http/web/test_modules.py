"""The page's modules: no name is exported that no other module takes."""

import re
from pathlib import Path

import tenure.doors.http

WEB = Path(tenure.doors.http.__file__).parent / "web"
EXPORTED = re.compile(r"^export (?:async )?(?:function|class|const) (\w+)", re.MULTILINE)


def test_every_exported_name_is_imported_by_another_module() -> None:
    texts = {path.name: path.read_text("utf-8") for path in WEB.glob("*.js")}
    imported = {
        name
        for text in texts.values()
        for names in re.findall(r"^import \{([^}]*)\}", text, re.MULTILINE)
        for name in re.findall(r"\w+", names)
    }

    assert len(imported) > 50
    assert {(path, name) for path, text in texts.items() for name in EXPORTED.findall(text)} - {
        (path, name) for path in texts for name in imported
    } == set()

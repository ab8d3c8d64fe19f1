"""What MkDocs does besides its own work when `make docs` builds the site: hooks, see mkdocs.yml.

The pages are those of docs/, as they are. Added are README.md, CONTRIBUTING.md and CHANGELOG.md,
which lie above docs/; a page for each public module; and the notebooks, which are run. A link to
any of these files leads to its page, and a link to another file of the repository leads to the
repository, as docs/links.py says.

The build fails while a public name lacks a docstring (docs/names.py), and MkDocs' option
``--strict`` makes it fail for a link or an anchor that leads nowhere.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import links
import names
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ABOVE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages that lie above docs/, and what they are called on the site."""

NOTEBOOKS = "notebooks"
BRANCH = "main"
SECONDS = 300
"""How long one cell of a notebook may take: minutes where kernels are compiled for it."""

_shown: dict[str, str] = {}
"""What cells of notebooks display, by the number that holds its place in the page."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The addresses, and the modules in the navigation."""
    addresses = links.addresses()
    config.repo_url = addresses.get("Repository")
    config.site_url = addresses.get("Documentation")
    config.edit_uri = ""  # pages above docs/ have no edit address that MkDocs could know
    for section in config.nav or ():
        if section.get("API reference"):
            section["API reference"] = ["api/index.md", *_modules_in("carolus_env")]
    return config


def _modules_in(package: str) -> list[Any]:
    """The part of the navigation with the modules right inside a package."""
    found: list[Any] = []
    for name in _inside(package):
        page = _page_of_module(name)
        inner = _modules_in(name)
        found.append({name.rpartition(".")[2]: [page, *inner] if inner else page})
    return [{package: _page_of_module(package)}, *found] if package == "carolus_env" else found


def _inside(package: str) -> list[str]:
    return [name for name in names.public_modules() if name.rpartition(".")[0] == package]


def _page_of_module(name: str) -> str:
    """``carolus_env.games.game`` is on ``api/games/game.md``, its package on ``index.md`` there."""
    path = name.removeprefix("carolus_env.").replace(".", "/")
    return f"api/{path}/index.md" if _inside(name) and "." in name else f"api/{path}.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    if missing := sorted(set(names.lacking()) - names.WAITING):
        raise PluginError(f"public names without a docstring: {', '.join(missing)}")
    for path, page in ABOVE.items():
        files.append(File.generated(config, page, content=(links.ROOT / path).read_text()))
    for name in names.public_modules():
        files.append(File.generated(config, _page_of_module(name), content=module_page(name)))
    files.append(File.generated(config, "api/index.md", content=modules_page()))
    for path in sorted((links.ROOT / "docs" / NOTEBOOKS).glob("*.py")):
        page, notebook = run_notebook(path)
        where = f"{NOTEBOOKS}/{path.stem}"
        files.append(File.generated(config, f"{where}.md", content=page))
        files.append(File.generated(config, f"{where}.ipynb", content=notebook))
    return files


# ------------------------------------------------------------------------------------ links


def page_of(path: str) -> str:
    """What a file of the repository would be called on the site."""
    if path in ABOVE:
        return ABOVE[path]
    if path.startswith(f"docs/{NOTEBOOKS}/"):
        path = re.sub(r"\.py$", ".md", path)
    return path.removeprefix("docs/") if path.startswith("docs/") else f"../{path}"


def file_of(page: str) -> str:
    """The file of the repository that a page of the site is made of."""
    for path, name in ABOVE.items():
        if name == page:
            return path
    return f"docs/{page}"


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to the site's pages, or to the repository for what is not on the site."""
    here = page.file.src_uri
    if here.startswith("api/"):
        return markdown
    if here == "index.md":
        page.meta["hide"] = ["navigation"]

    def target(link: str, is_image: bool) -> str | None:
        path, anchor = links.resolved(file_of(here), link)
        if files.get_file_from_path(page_of(path)):
            return posixpath.relpath(page_of(path), posixpath.dirname(here) or ".") + anchor
        if not (links.ROOT / path).exists():
            return link  # which --strict refuses
        return links.in_repository(config.repo_url, BRANCH, path, is_image)

    return links.relinked(markdown, target)


# ------------------------------------------------------------------------------------ modules


def modules_page() -> str:
    """All modules, in a table for each package."""
    modules = names.public_modules()
    lines = [
        "# API reference",
        "",
        "Every public module, with the first line of what it says of itself. What most programs"
        " need is in [`carolus_env`](carolus_env.md) itself; environments are in"
        " [`carolus_magnus_v0`](carolus_magnus_v0.md) (PettingZoo),"
        " [`envs.gym`](envs/gym.md) (Gymnasium) and [`envs.sb3`](envs/sb3.md) (Stable-Baselines3).",
    ]
    for package in [name for name in modules if _inside(name)]:
        lines += ["", f"## {package}", "", *_modules_table([package, *_inside(package)], "api")]
    return "\n".join(lines) + "\n"


def module_page(module: str) -> str:
    """The page of a module: its own names, or what its package exports, and modules inside it."""
    tree = names.public_modules()[module]
    exports = [name for name in names.exported(tree) or () if not name.startswith("_")]
    elsewhere = [name for name in exports if names.source_of(module, name) != f"{module}.{name}"]
    lines = ["---", "search: {boost: 0.5}  # below what explains", "---", "", f"::: {module}"]
    if inside := _inside(module):
        own = [name for name in exports if name not in elsewhere]
        lines += ["    options:", f"      members: {own or 'false'}"]
    if elsewhere:
        lines += ["", "## Names", "", "| name | what |", "| --- | --- |"]
        for name in exports:
            full = names.source_of(module, name)
            about = names.docstrings().get(full, "").strip().splitlines()
            shown = f"[`{name}`][{full}]" if about else f"`{name}`"
            lines.append(f"| {shown} | {_cell(about)} |")
    if inside:
        here = posixpath.dirname(_page_of_module(module))
        lines += ["", "## Modules", "", *_modules_table(inside, here)]
    return "\n".join(lines) + "\n"


def _modules_table(modules: list[str], here: str) -> list[str]:
    """A table of modules for a page in the folder ``here``."""
    rows = []
    for name in modules:
        link = posixpath.relpath(_page_of_module(name), here)
        rows.append(f"| [`{name}`]({link}) | {_cell(names.docstrings()[name].splitlines())} |")
    return ["| module | what |", "| --- | --- |", *rows]


def _cell(lines: list[str]) -> str:
    return lines[0].replace("|", "\\|") if lines else ""


# ------------------------------------------------------------------------------------ notebooks


def run_notebook(path: Path) -> tuple[str, str]:
    """Run a notebook: its page, with a place for everything that it displays, and its .ipynb."""
    import jupytext
    import nbclient
    import nbformat

    notebook = jupytext.read(path)
    folder = {"metadata": {"path": str(links.ROOT)}}
    client = nbclient.NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources=folder
    )
    try:
        client.execute()
    except nbclient.exceptions.CellExecutionError as error:
        raise PluginError(f"{path.name}: {error}") from None
    title, *cells = notebook.cells
    parts = [
        title.source,
        f"[This page as a notebook]({path.stem}.ipynb), with what it shows here.",
    ]
    for cell in cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        else:
            parts.append(f"```python\n{cell.source}\n```")
            parts += [shown for output in cell.outputs if (shown := _displayed(output))]
    return "\n\n".join(parts) + "\n", nbformat.writes(notebook)


def _displayed(output: Any) -> str:
    """What a cell printed or displayed, in Markdown."""
    if output.output_type == "stream":
        text = output.text.rstrip() if output.name == "stdout" else ""
        return f"```text\n{text}\n```" if text else ""
    data = output.get("data", {})
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            number = str(len(_shown))
            _shown[number] = "".join(data[kind])
            return f'<div class="shown" data-shown="{number}"></div>'
    return f"```text\n{''.join(data['text/plain'])}\n```" if "text/plain" in data else ""


def on_page_content(html: str, **_: Any) -> str:
    """Put what cells displayed into its place, as it is."""
    return re.sub(
        r'(<div class="shown") data-shown="(\d+)">', lambda f: f"{f[1]}>{_shown[f[2]]}", html
    )

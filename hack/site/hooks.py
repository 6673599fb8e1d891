"""Links from docs/ to files beside docs/ are right on GitHub. On the site they lead to GitHub, and the file has to exist."""
import os
import posixpath
import re

REPOSITORY = "https://github.com/capstan-dev/capstan"
ROOT = os.path.normpath(os.path.join(os.path.dirname(__file__), "..", ".."))
LINK = re.compile(r"\]\((?P<target>\.\.?/[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")


def on_page_markdown(markdown, page, **_):
    folder = posixpath.dirname(posixpath.join("docs", page.file.src_uri))

    def outside(match):
        path = posixpath.normpath(posixpath.join(folder, match["target"]))
        if path.startswith("docs/"):
            return match[0]  # mkdocs resolves and checks it
        target = os.path.join(ROOT, path)
        if not os.path.exists(target):
            raise FileNotFoundError(f"docs/{page.file.src_uri} links to {path}, which does not exist")
        kind = "tree" if os.path.isdir(target) else "blob"
        return f"]({REPOSITORY}/{kind}/main/{path}{match['anchor'] or ''})"

    return LINK.sub(outside, markdown)

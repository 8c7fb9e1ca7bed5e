"""`python -m docgen`: write every page that is made from code, and name it."""

from docgen.pages import ROOT, pages

if __name__ == "__main__":
    for name, text in pages().items():
        (ROOT / name).write_text(text, encoding="utf-8")
        print(name)

//! Builds the documentation site with mdBook and checks its links.
//!
//! - Links from `docs` to other files of the checkout are rewritten to the repository, because those files are not
//!   part of the site.
//! - Every link must lead to an existing file and anchor of the site.

use crate::process::{self, command};
use crate::terminal::say;
use crate::{parts, servers};
use anyhow::{Context, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Output folder of the site (`SITE`), and the folder with copies of its pages, both relative to the checkout.
const SITE: &str = "target/book";
const PAGES: &str = "target/book-pages";

/// Builds the site and checks its links.
pub(crate) fn build() -> anyhow::Result<()> {
    let tool = servers::install_book_tool()?;
    let root = parts::root();
    for folder in [SITE, PAGES] {
        if root.join(folder).exists() {
            fs::remove_dir_all(root.join(folder))?;
        }
    }
    copy(&root.join("docs"), &root.join(PAGES), Path::new("docs"))?;
    let mut mdbook = command(&tool.display().to_string());
    mdbook.env("RUST_LOG", "warn").args(["build", PAGES, "--dest-dir"]).arg(root.join(SITE));
    process::run(&mut mdbook)?;
    let broken = broken(&root.join(SITE))?;
    ensure!(broken.is_empty(), "{}", broken.join("\n"));
    say(&format!("built {SITE}/index.html; all links are valid"))
}

/// Copies the pages and rewrites links to files outside `docs`. `place` is the path of `from` relative to the
/// checkout.
fn copy(from: &Path, to: &Path, place: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to, &place.join(entry.file_name()))?;
        } else if path.extension().is_some_and(|end| end == "md") {
            fs::write(&to, outward(&fs::read_to_string(&path)?, place))?;
        } else {
            fs::copy(&path, &to)?;
        }
    }
    Ok(())
}

/// Rewrites links to files outside `docs` to lead to the repository. `place` is the page's folder.
fn outward(text: &str, place: &Path) -> String {
    let mut pieces = text.split("](");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.push_str("](");
        let target = piece.split([')', '#']).next().unwrap_or_default();
        let within = flat(&place.join(target));
        if !target.is_empty() && !target.contains("://") && !within.starts_with("docs") {
            out.push_str(&format!("{}/blob/main/{}", env!("CARGO_PKG_REPOSITORY"), within.display()));
            out.push_str(piece.get(target.len()..).unwrap_or_default());
        } else {
            out.push_str(piece);
        }
    }
    out
}

/// Removes `.` and `..` from a path without accessing the disk.
fn flat(path: &Path) -> PathBuf {
    let mut flat = PathBuf::new();
    for part in path.components() {
        if part.as_os_str() == ".." {
            flat.pop();
        } else {
            flat.push(part);
        }
    }
    flat
}

/// Returns the broken links of a site.
fn broken(site: &Path) -> anyhow::Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    read(site, &mut pages)?;
    ensure!(pages.len() > 5, "the site has no pages");
    let names: BTreeMap<&PathBuf, BTreeSet<&str>> =
        pages.iter().map(|(page, text)| (page, values(text, " id=\"").collect())).collect();
    let mut broken = Vec::new();
    for (page, text) in &pages {
        let folder = page.parent().context("a page has no parent folder")?;
        for link in values(text, " href=\"").chain(values(text, " src=\"")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            if link.contains(':') || link.starts_with("//") {
                continue;
            }
            let to = if file.is_empty() { page.clone() } else { flat(&folder.join(file)) };
            let named = names.get(&to).is_none_or(|names| anchor.is_empty() || names.contains(anchor));
            if !to.is_file() || !named {
                broken.push(format!("{}: broken link `{link}`", page.strip_prefix(site)?.display()));
            }
        }
    }
    Ok(broken)
}

/// Returns the attribute values after each occurrence of `before`, up to the next quotation mark.
fn values<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split('"').next())
}

/// Reads all pages except `404.html`, whose links are relative to a web server's root.
fn read(folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read(&path, pages)?;
        } else if path.extension().is_some_and(|end| end == "html") && !path.ends_with("404.html") {
            let text = fs::read_to_string(&path)?;
            if text.is_empty() {
                bail!("`{}` is empty", path.display());
            }
            pages.insert(path, text);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_docs_lead_to_the_repository() {
        let of = |text: &str| outward(text, Path::new("docs/guide"));
        let same =
            "[a](../reference/limits.md#x), ![b](../pictures/b.png), [c](https://example.com/x), [d](#d)";
        assert_eq!(of(same), same);
        let repository = env!("CARGO_PKG_REPOSITORY");
        let there = format!("[t]({repository}/blob/main/tests/a.rs#L1) and on");
        assert_eq!(of("[t](../../tests/a.rs#L1) and on"), there);
    }

    #[test]
    fn finds_links_to_missing_pages_and_anchors() {
        let site = tempfile::tempdir().unwrap();
        let page = |name: &str, text: &str| fs::write(site.path().join(name), text).unwrap();
        for name in ["b", "c", "d", "e", "f"] {
            page(&format!("{name}.html"), "<h1 id=\"top\">t</h1>");
        }
        page(
            "a.html",
            "<a href=\"b.html#top\">b</a> <a href=\"https://example.com\">e</a> <img src=\"x.png\">",
        );
        assert_eq!(broken(site.path()).unwrap(), ["a.html: broken link `x.png`"]);
        page("x.png", "");
        page("b.html", "<a href=\"a.html\">a</a><a href=\"c.html#none\">c</a>");
        let both = ["a.html: broken link `b.html#top`", "b.html: broken link `c.html#none`"];
        assert_eq!(broken(site.path()).unwrap(), both);
    }
}

//! Checks that crates, and the modules of some crates, import only lower layers.
//!
//! - `layers.txt` lists the layers. `docs/explanation/architecture.md` must name each crate.
//! - Modules on the same line do not import one another.

use super::circles;
use super::tree::Tree;
use super::workspace::Package;
use crate::parts;
use anyhow::{Context, bail};

const ORDER: &str = include_str!("layers.txt");

/// Page that must name each crate.
const PAGE: &str = "docs/explanation/architecture.md";

/// Crates whose modules are also divided into layers. The names omit the crates' prefix.
const ROOMS_OF: [&str; 3] = ["daemon", "server", "services"];

/// Names by layer, from top to bottom. Names in the same layer do not import one another.
type Layers<'a> = Vec<Vec<&'a str>>;

/// An import and its first location.
struct Import<'a> {
    from: &'a str,
    to: &'a str,
    seen: String,
}

/// Returns an error if an import leads upwards, a name is not listed or the page omits a crate.
pub(crate) fn check(packages: &[Package], trees: &[Tree]) -> anyhow::Result<()> {
    let names: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let among =
        |package: &&Package, to: &str| names.contains(&to).then(|| format!("{}'s Cargo.toml", package.name));
    let dependencies = packages.iter().flat_map(|package| {
        let imports = package.dependencies.iter();
        imports.filter_map(move |to| Some(Import { from: &package.name, to, seen: among(&package, to)? }))
    });
    let mut problems = check_layers("crate", &layers("crates")?, &names, dependencies);
    for of in ROOMS_OF {
        let is_it = |tree: &&Tree| tree.name.strip_prefix("ironcurtain_") == Some(of);
        let tree = trees.iter().find(is_it).with_context(|| format!("the crate `{of}` does not exist"))?;
        let arrows = tree.arrows();
        let rooms: Vec<&str> = tree.rooms().collect();
        let imports = arrows.iter().filter_map(|arrow| match circles::siblings(arrow)? {
            ([], from, to) => Some(Import { from, to, seen: arrow.seen.clone() }),
            _ => None,
        });
        problems.extend(check_layers("room", &layers(of)?, &rooms, imports));
    }
    let page = std::fs::read_to_string(parts::root().join(PAGE)).context(PAGE)?;
    problems.extend(undocumented(&page, &layers("crates")?));
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

/// Parses the layers below a heading of `layers.txt`.
fn layers(heading: &str) -> anyhow::Result<Layers<'static>> {
    let below = ORDER.lines().skip_while(|line| *line != heading).skip(1);
    let layers: Layers<'static> = below
        .take_while(|line| line.starts_with(' '))
        .map(|line| line.split_whitespace().collect())
        .collect();
    if layers.is_empty() {
        bail!("`layers.txt` has no lines below `{heading}`");
    }
    Ok(layers)
}

/// Returns a problem for each crate that the page does not name in backticks. The crate's prefix can be omitted.
fn undocumented(page: &str, crates: &Layers<'_>) -> Vec<String> {
    let is_named = |name: &str| {
        let short = name.strip_prefix("ironcurtain-").unwrap_or(name);
        [name, short].iter().any(|name| page.contains(&format!("`{name}`")))
    };
    let missing = crates.iter().flatten().filter(|name| !is_named(name));
    missing.map(|name| format!("{PAGE} does not name the crate `{name}`")).collect()
}

/// Returns a problem for each name missing in the list or in the code, and for each import that leads upwards.
fn check_layers<'a>(
    kind: &str,
    layers: &Layers<'_>,
    names: &[&str],
    imports: impl Iterator<Item = Import<'a>>,
) -> Vec<String> {
    let layer_index = |name: &str| layers.iter().position(|layer| layer.contains(&name));
    let unlisted = names.iter().filter(|name| layer_index(name).is_none());
    let mut problems: Vec<String> =
        unlisted.map(|name| format!("the {kind} `{name}` is not in `layers.txt`")).collect();
    let unknown = layers.iter().flatten().filter(|name| !names.contains(name));
    problems
        .extend(unknown.map(|name| format!("`layers.txt` lists the {kind} `{name}`, which does not exist")));
    for Import { from, to, seen } in imports {
        if let (Some(above), Some(below)) = (layer_index(from), layer_index(to))
            && above >= below
        {
            problems.push(format!("`{from}` imports `{to}`, which is not below it, in {seen}"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(imports: &[(&'static str, &'static str)]) -> Vec<String> {
        let imports = imports.iter().map(|(from, to)| Import { from, to, seen: "a.rs:1".into() });
        check_layers(
            "room",
            &vec![vec!["top"], vec!["left", "right"], vec!["bottom"]],
            &["top", "left", "right", "bottom"],
            imports,
        )
    }

    #[test]
    fn undocumented_crate_is_reported() {
        let crates = vec![vec!["ironcurtain-audit", "xtask"], vec!["ironcurtain-new"]];
        let problem = "docs/explanation/architecture.md does not name the crate `ironcurtain-new`";
        assert_eq!(undocumented("`audit` and `xtask`", &crates), [problem]);
    }

    #[test]
    fn imports_point_down() {
        assert_eq!(of(&[("top", "left"), ("top", "bottom"), ("right", "bottom")]), [""; 0]);
        assert_eq!(of(&[("bottom", "top")]), ["`bottom` imports `top`, which is not below it, in a.rs:1"]);
        assert_eq!(of(&[("left", "right")]), ["`left` imports `right`, which is not below it, in a.rs:1"]);
    }

    #[test]
    fn names_must_match_the_list() {
        let found =
            check_layers("room", &vec![vec!["old"], vec!["kept"]], &["kept", "new"], std::iter::empty());
        assert_eq!(
            found,
            [
                "the room `new` is not in `layers.txt`",
                "`layers.txt` lists the room `old`, which does not exist"
            ]
        );
    }
}

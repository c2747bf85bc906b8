//! Tests how the server and other programs see a granted repository.

use super::{git, grant_folder_of, repository, world_with_guarded_git_config};
use crate::hostile;
use crate::world::World;
use std::fs;
use std::path::Path;

const STATUS: [&str; 3] = ["status", "--porcelain", "--ignored"];

/// Returns the paths of all files below a folder, except files that git changes when it reads a repository.
fn names(dir: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            all.push(entry.path().to_str().unwrap().to_owned());
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    all.sort();
    all
}

fn stays_clean(world: &World) {
    let repo = repository(world);
    let (before, named) = (git(world, &repo, &STATUS), names(&repo));
    assert_eq!(before, "!! ignored\n");
    let mut client = world.connect("hostile");
    grant_folder_of(world, &mut client, &repo.join("text"));
    assert_eq!(client.run(&repo, "git status --porcelain --ignored").ok(), before, "inside");
    assert_eq!(client.run(&repo.join("empty"), "ls -A").ok(), "", "an empty folder, inside");
    assert_eq!(git(world, &repo, &STATUS), before, "outside, while it is granted");
    assert_eq!(names(&repo), named);
    fs::write(repo.join("empty/outside"), "x").unwrap();
    client.run(&repo, "echo made > made && git add -A").ok();
    let expected = "A  empty/outside\nA  made\n!! ignored\n";
    assert_eq!(client.run(&repo, "git status --porcelain --ignored").ok(), expected, "inside");
    let record = super::end_session(world, client);
    assert_eq!(git(world, &repo, &STATUS), expected, "outside, afterwards");
    assert_eq!((record.files, record.unfinished), (vec![], vec![]));
    let made = names(&repo).into_iter().filter(|name| !named.contains(name) && !name.contains("/.git/"));
    let expected = ["empty/outside", "made"].map(|name| repo.join(name).to_str().unwrap().to_owned());
    assert_eq!(made.collect::<Vec<_>>(), expected);
}

#[test]
fn granted_repository_stays_clean_for_server_and_user() {
    stays_clean(&hostile::world());
    stays_clean(&world_with_guarded_git_config());
}

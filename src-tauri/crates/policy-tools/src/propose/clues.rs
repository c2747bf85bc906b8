//! Words, phrases and values that indicate an argument's meaning.

/// Returns `true` if `list`, whose words are separated by spaces, contains the word.
pub(super) fn contains_word(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

/// Words that mean a file or folder.
pub(super) const PATH_WORDS: &str = "path file dir directory folder cwd pwd workdir basedir filename filesystem disk root workspace \
    worktree dest dst src pathname dirname subdirectory subfolder";

/// Word stems that mean a file or folder in other languages.
const FOREIGN_PATH_STEMS: [&str; 31] = [
    "fichier",
    "chemin",
    "dossier",
    "repertoire",
    "répertoire",
    "datei",
    "pfad",
    "ordner",
    "verzeichnis",
    "archivo",
    "carpeta",
    "directorio",
    "fichero",
    "arquivo",
    "ficheiro",
    "caminho",
    "diretorio",
    "diretório",
    "cartella",
    "percorso",
    "bestand",
    "файл",
    "папк",
    "каталог",
    "文件",
    "路径",
    "目录",
    "ファイル",
    "フォルダ",
    "파일",
    "경로",
];

/// Complete words that mean a file or folder in other languages.
const FOREIGN_PATH_WORDS: [&str; 8] = ["ruta", "pasta", "путь", "パス", "폴더", "plik", "sökväg", "dosya"];

/// Words in tool names and descriptions that suggest files.
const FILE_CONTEXT_WORDS: &str =
    "path file dir directory folder filename filepath filesystem disk document pathname";

/// Returns `true` if a word means a file or folder in a language other than English.
pub(super) fn is_foreign_path_word(word: &str) -> bool {
    FOREIGN_PATH_WORDS.contains(&word) || FOREIGN_PATH_STEMS.iter().any(|part| word.contains(part))
}

/// Returns `true` if a word suggests files in any supported language.
pub(super) fn mentions_files(word: &str) -> bool {
    contains_word(FILE_CONTEXT_WORDS, word) || is_foreign_path_word(word)
}

/// Words that often, but not always, mean a file.
pub(super) const AMBIGUOUS_PATH_WORDS: &str = "source target destination output input location image audio video document attachment media \
    resource archive config database db project repo repository module origin log script notebook";

/// Words that, at the end of an argument's name, indicate that the argument does not name a resource.
pub(super) const OPAQUE_WORDS: &str = "id uuid guid token cursor hash sha sha1 sha256 etag number count limit offset page size length \
    width height depth index position line column row start end min max total level type kind mode \
    format encoding charset mime extension ext content text body message data payload query q question \
    prompt term keyword phrase title description summary comment note reason label tag category \
    status state priority severity color colour language lang locale timezone date time timestamp \
    since until before after duration timeout delay interval order sort direction filter field \
    property expression regex pattern selector xpath jsonpath css html markdown json xml yaml csv \
    sql statement value string char character word symbol version amount price currency unit user \
    username account assignee author reviewer member team group role scope permission visibility \
    privacy password secret credential flag option enabled channel thread ts emoji reaction name \
    alias nickname subject event issue milestone entity observation relation thought step \
    replacement find replace search style theme font method header parameter param arg argument \
    stage phase weight ratio score phone city country latitude longitude region zone quality \
    model seed table schema metric rate window signature key range formula recurrence response \
    action operation op strategy algorithm policy rule condition edit code snippet command cmd shell \
    commit ref revision rev oid digest checksum wildcard";

/// Words that mean a URL in argument names.
pub(super) const URL_WORDS: [&str; 8] =
    ["url", "uri", "href", "link", "website", "webpage", "endpoint", "hyperlink"];

/// Phrases that mean a file path.
pub(super) const PATH_PHRASES: [&str; 23] = [
    "path to",
    "file path",
    "filepath",
    "absolute path",
    "relative path",
    "full path",
    "local path",
    "directory path",
    "folder path",
    "path of",
    "paths to",
    "paths of",
    "file name",
    "filename",
    "working directory",
    "local file",
    "on disk",
    "to the file",
    "location of the",
    "directory to",
    "directory in which",
    "directory where",
    "folder to",
];

/// Phrases that contain the word "path" but do not mean a file path.
const NON_FILE_PATH_PHRASES: [&str; 12] = [
    "json path",
    "jsonpath",
    "xpath",
    "url path",
    "key path",
    "property path",
    "field path",
    "object path",
    "api path",
    "request path",
    "path parameter",
    "import path",
];

/// Returns `true` if `text` contains a phrase that means a path, file or folder.
pub(super) fn mentions_a_path(text: &str) -> bool {
    let phrases = PATH_PHRASES.iter().chain(&FOREIGN_PATH_STEMS);
    phrases.into_iter().any(|phrase| text.contains(phrase)) && !mentions_non_file_path(text)
}

/// Returns `true` if `text` mentions a path inside a document, a URL or similar, rather than a file path.
pub(super) fn mentions_non_file_path(text: &str) -> bool {
    NON_FILE_PATH_PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// Returns `true` if a value resembles a local path.
pub(super) fn looks_like_a_path(value: &str) -> bool {
    let drive = value.as_bytes().get(1..3).is_some_and(|rest| rest == b":\\" || rest == b":/");
    let starts = ["/", "~/", "./", "../", "file:"].iter().any(|start| value.starts_with(start));
    drive || starts && !value.starts_with("//") || [".", "..", "~"].contains(&value)
}

/// Returns `true` if a value is certainly an absolute path or a path that starts with `~`.
pub(super) fn is_absolute_path(value: &str) -> bool {
    looks_like_a_path(value) && !value.starts_with('.') && value.len() > 1
}

/// Returns `true` if a value resembles a URL.
pub(super) fn looks_like_a_url(value: &str) -> bool {
    ["http://", "https://", "ftp://", "ws://", "wss://"].iter().any(|start| value.starts_with(start))
}

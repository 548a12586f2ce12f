//! The code of a crate as lines: without comments, and without what only its tests have. It relies on the form that `cargo fmt`
//! gives to code.

use crate::step;

/// A file of a crate.
pub(crate) struct SourceFile {
    /// Its path from the root of the workspace.
    pub(crate) path: String,
    /// Its module, from the root of the crate.
    pub(crate) module: Vec<String>,
    pub(crate) lines: Vec<Line>,
}

/// A line of code.
pub(crate) struct Line {
    pub(crate) number: usize,
    pub(crate) is_public: bool,
    /// Whether it is an item of the file itself, and not of a module, a trait or an implementation in it.
    pub(crate) is_outermost: bool,
    /// Without `pub` and `pub(…)`.
    pub(crate) code: String,
}

/// Reads the files of a crate of this workspace, from its root on.
pub(crate) fn read(root: &str) -> Result<Vec<SourceFile>, String> {
    read_with(root, &step::read)
}

/// Reads the files of a crate by `load`, which returns the text of a file.
pub(crate) fn read_with(root: &str, load: &dyn Fn(&str) -> Result<String, String>) -> Result<Vec<SourceFile>, String> {
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut files = vec![SourceFile { path: root.to_owned(), module: Vec::new(), lines: lines(&load(root)?) }];
    let mut at = 0;
    while let Some(parent) = files.get(at) {
        let modules = parent.children().map(|child| [&*parent.module, &[child.to_owned()]].concat());
        for module in modules.collect::<Vec<_>>() {
            let path = format!("{folder}/{}.rs", module.join("/"));
            files.push(SourceFile { lines: lines(&load(&path)?), path, module });
        }
        at += 1;
    }
    Ok(files)
}

impl SourceFile {
    /// The modules that have files of their own.
    pub(crate) fn children(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| line.code.strip_prefix("mod ")?.strip_suffix(';'))
    }
}

/// Returns the lines that are neither blank nor comments, nor of an item that only tests have.
pub(crate) fn lines(text: &str) -> Vec<Line> {
    let is_comment = |code: &str| ["//", "#[doc", "#![doc"].iter().any(|start| code.starts_with(start));
    let mut rest = (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty() && !is_comment(line.trim_start()));
    let mut lines = Vec::new();
    while let Some((number, line)) = rest.next() {
        let code = line.trim_start();
        let indent = &line[..line.len() - code.len()];
        if ["#[test]", "#[cfg(test)]", "#[cfg(all(test,"].iter().any(|attribute| code.starts_with(attribute)) {
            // The last line of the item is the first one that ends where the attribute begins.
            let ends = |line: &str| {
                let code = line.strip_prefix(indent).unwrap_or_default();
                code == "}" || !code.starts_with(' ') && code.ends_with([';', '}', ','])
            };
            rest.find(|(_, line)| ends(line));
            continue;
        }
        let public = code.strip_prefix("pub ").or_else(|| Some(code.strip_prefix("pub(")?.split_once(") ")?.1));
        let (is_public, is_outermost) = (public.is_some(), indent.is_empty());
        lines.push(Line { number, is_public, is_outermost, code: public.unwrap_or(code).to_owned() });
    }
    lines
}

#[test]
fn what_only_tests_have_and_what_documents_is_no_code() {
    let text = "//! A file.\n\n/// A type.\n#[derive(Debug)]\nstruct A {\n    b: u8, // a field\n    #[cfg(test)]\n    c: u8,\n}\n\n#[cfg(test)]\nmod tests {\n    mod c;\n}\n\n#[cfg(any(test, unix))]\npub(in crate::a) mod d;\n";
    let file = SourceFile { path: String::new(), module: Vec::new(), lines: lines(text) };
    let numbers: Vec<_> = file.lines.iter().map(|line| line.number).collect();
    assert_eq!((numbers, file.children().collect::<Vec<_>>()), (vec![4, 5, 6, 9, 16, 17], vec!["d"]));
}

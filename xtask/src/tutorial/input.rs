//! What the reader of a page types: each command of a console, and each file.

use crate::code_block::{CodeBlock, code_blocks};

/// The name of the language of consoles.
const CONSOLE: &str = "console";

/// What is before a command.
const PROMPT: &str = "$ ";

/// Ends a file that is typed into a shell.
const END: &str = "END_OF_THE_FILE";

/// One thing that is typed.
#[derive(Debug, PartialEq)]
pub(super) struct Input {
    /// Its line on the page.
    pub(super) line: usize,
    /// The command, or the name of the file.
    pub(super) title: String,
    /// As a shell takes it.
    pub(super) words: String,
    /// The lines that it prints. They follow on the page.
    pub(super) shown: Vec<String>,
}

/// A line of the page, and what is wrong there.
pub(super) type Mistake = (usize, String);

/// Reads a page.
pub(super) fn read(page: &str) -> Result<Vec<Input>, Mistake> {
    let mut inputs = Vec::new();
    for block in code_blocks(page) {
        if block.language == CONSOLE { inputs.extend(commands(&block)?) } else { inputs.push(file(&block)?) }
    }
    Ok(inputs)
}

fn commands(block: &CodeBlock) -> Result<Vec<Input>, Mistake> {
    let mut commands: Vec<Input> = Vec::new();
    for (line, text) in (block.line..).zip(block.text.lines()) {
        match (text.strip_prefix(PROMPT), commands.last_mut()) {
            (Some(words), _) => {
                commands.push(Input { line, title: words.into(), words: words.into(), shown: Vec::new() });
            }
            (None, Some(command)) => command.shown.push(text.to_owned()),
            (None, None) => return Err((line, format!("a console begins with a command, like `{PROMPT}ls`"))),
        }
    }
    Ok(commands)
}

/// The first line of a file is a comment with its name.
fn file(block: &CodeBlock) -> Result<Input, Mistake> {
    let first = block.text.lines().next().unwrap_or_default();
    let name = ["// ", "# "].iter().find_map(|comment| first.strip_prefix(comment));
    let name = name.filter(|name| name.contains('.') && !name.contains(char::is_whitespace)).ok_or_else(|| {
        let remedy = "write `console` behind the backticks, or the name of the file first, like `// src/main.rs`";
        (block.line, format!("this block is neither a console nor a file: {remedy}"))
    })?;
    let words = format!("cat > '{name}' <<'{END}'\n{}{END}", block.text);
    Ok(Input { line: block.line, title: name.to_owned(), words, shown: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_what_they_print_and_files_their_names() {
        let page = "# A page\n\n```console\n$ ls\na\n\nb\n$ rm a &\n```\n\nThen:\n\n```toml\n# a.toml\nb = 'c'\n```\n";
        let command = |line, words: &str, shown: &[&str]| Input {
            line,
            title: words.to_owned(),
            words: words.to_owned(),
            shown: shown.iter().map(|text| (*text).to_owned()).collect(),
        };
        let words = "cat > 'a.toml' <<'END_OF_THE_FILE'\n# a.toml\nb = 'c'\nEND_OF_THE_FILE";
        let file = Input { title: "a.toml".into(), ..command(14, words, &[]) };
        let ls = command(4, "ls", &["a", "", "b"]);
        assert_eq!(read(page), Ok(vec![ls, command(8, "rm a &", &[]), file]));
    }

    #[test]
    fn a_block_that_is_nothing_to_type_is_a_mistake_with_its_line() {
        for block in ["rust\nfn f() {}", "toml\n# a comment", "text\nlistening", "console\nlistening"] {
            let mistake = read(&format!("# A page\n\n```{block}\n```\n")).unwrap_err();
            assert_eq!(mistake.0, 4, "{mistake:?}");
        }
    }
}

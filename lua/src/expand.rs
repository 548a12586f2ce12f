//! Puts a script together from its parts.
//!
//! Two things in a text are replaced:
//!
//! * a line `--- @include parts/read.lua` by the line `-- parts/read.lua` and the text of that file, each line indented
//!   as the directive is;
//! * `${PROTOCOL}` by the constant of that name.
//!
//! Directives for each rule, as in `windows.lua`, stay as they are. A part may include parts. Comments stay: they cost
//! the server nothing, and they keep the line numbers in the server's errors right.

/// How a directive begins, after its indentation.
const DIRECTIVE: &str = "--- @";

const INCLUDE: &str = "include ";

/// Directives that stay until the rules of a policy are known: see `windows.rs`.
const LATER: [&str; 4] = ["each rule", "end", "each subject", "end subject"];

/// How the name of a constant begins that stays until the rules of a policy are known.
const EACH: [&str; 2] = ["EACH ", "EACH_SUBJECT "];

pub(crate) struct Sources<'a> {
    /// Returns the text of a file, given its path in the folder of the scripts.
    pub(crate) read: &'a dyn Fn(&str) -> Option<String>,
    /// The constants, by name.
    pub(crate) constants: &'a [(&'a str, String)],
}

impl Sources<'_> {
    /// Returns the text of a script with all that it includes.
    ///
    /// # Errors
    ///
    /// A part, a constant or a directive does not exist, or a part includes itself. The text names the file and the line.
    pub(crate) fn expand(&self, file: &str) -> Result<String, String> {
        let text = (self.read)(file).ok_or_else(|| format!("there is no file `{file}`"))?;
        let mut expanded = String::new();
        self.append(&mut expanded, &text, &Including { file, indentation: "", by: None })?;
        Ok(expanded)
    }

    fn append(&self, expanded: &mut String, text: &str, within: &Including<'_>) -> Result<(), String> {
        for (index, line) in text.lines().enumerate() {
            let blame = |mistake: String| format!("{}:{}: {mistake}", within.file, index + 1);
            let code = line.trim_start();
            if let Some(directive) = code.strip_prefix(DIRECTIVE).filter(|directive| !LATER.contains(directive)) {
                let unknown = || blame(format!("there is no directive `{directive}`"));
                let part = directive.strip_prefix(INCLUDE).ok_or_else(unknown)?;
                let text = (self.read)(part).ok_or_else(|| blame(format!("there is no part `{part}`")))?;
                if within.has(part) {
                    return Err(blame(format!("`{part}` includes itself")));
                }
                let indentation = format!("{}{}", within.indentation, &line[..line.len() - code.len()]);
                expanded.extend([indentation.as_str(), "-- ", part, "\n"]);
                self.append(expanded, &text, &Including { file: part, indentation: &indentation, by: Some(within) })?;
                continue;
            }
            if !line.is_empty() {
                expanded.push_str(within.indentation);
                expanded.push_str(&self.with_constants(line).map_err(blame)?);
            }
            expanded.push('\n');
        }
        Ok(())
    }

    fn with_constants(&self, line: &str) -> Result<String, String> {
        let mut pieces = line.split("${");
        let mut replaced = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (name, rest) = piece.split_once('}').ok_or("`${` has no `}`")?;
            if EACH.iter().any(|each| name.starts_with(each)) {
                replaced.extend(["${", piece]);
                continue;
            }
            let constant = self.constants.iter().find(|(known, _)| *known == name);
            let (_, value) = constant.ok_or_else(|| format!("there is no constant `{name}`"))?;
            replaced.push_str(value);
            replaced.push_str(rest);
        }
        Ok(replaced)
    }
}

/// A file that is being included.
struct Including<'a> {
    file: &'a str,
    indentation: &'a str,
    by: Option<&'a Including<'a>>,
}

impl Including<'_> {
    /// Whether this file, or one that includes it, is `file`.
    fn has(&self, file: &str) -> bool {
        self.file == file || self.by.is_some_and(|by| by.has(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand<const N: usize>(files: [(&str, &str); N]) -> Result<String, String> {
        let read = |name: &str| files.iter().find(|(file, _)| *file == name).map(|(_, text)| (*text).to_owned());
        let constants = [("SEVEN", "7".to_owned()), ("NINE", "9".to_owned())];
        Sources { read: &read, constants: &constants }.expand("script.lua")
    }

    #[test]
    fn a_part_takes_the_place_of_its_directive_and_its_indentation() {
        let script = "if x then\n  --- @include a.lua\nend\n";
        let expanded = expand([
            ("script.lua", script),
            ("a.lua", "do\n\n  --- @include b.lua\nend\n"),
            ("b.lua", "local a = b\n"),
        ]);
        assert_eq!(expanded.unwrap(), "if x then\n  -- a.lua\n  do\n\n    -- b.lua\n    local a = b\n  end\nend\n");
    }

    #[test]
    fn a_part_may_be_included_twice() {
        let script = "--- @include a.lua\n--- @include a.lua\n";
        assert_eq!(
            expand([("script.lua", script), ("a.lua", "x = 1\n")]).unwrap(),
            "-- a.lua\nx = 1\n-- a.lua\nx = 1\n"
        );
    }

    #[test]
    fn a_constant_takes_the_place_of_its_name() {
        assert_eq!(expand([("script.lua", "a = ${SEVEN} * '>I${NINE}'${SEVEN}\n")]).unwrap(), "a = 7 * '>I9'7\n");
    }

    #[test]
    fn a_line_that_neither_includes_nor_names_a_constant_stays_as_it_is() {
        let script = "-- @include a.lua\n--- include a.lua\nx = '--- @include a.lua' .. \"$\" .. {}\n";
        assert_eq!(expand([("script.lua", script)]).unwrap(), script);
    }

    #[test]
    fn a_part_that_does_not_exist_is_an_error_with_its_place() {
        let mistake = expand([("script.lua", "--- @include a.lua\n"), ("a.lua", "x = 1\n--- @include b.lua\n")]);
        assert_eq!(mistake.unwrap_err(), "a.lua:2: there is no part `b.lua`");
        assert_eq!(expand([]).unwrap_err(), "there is no file `script.lua`");
    }

    #[test]
    fn a_directive_that_does_not_exist_is_an_error_with_its_place() {
        let mistake = expand([("script.lua", "x = 1\n  --- @inclde a.lua\n")]);
        assert_eq!(mistake.unwrap_err(), "script.lua:2: there is no directive `inclde a.lua`");
    }

    #[test]
    fn a_part_that_includes_itself_is_an_error_with_its_place() {
        let circle = expand([
            ("script.lua", "--- @include a.lua\n"),
            ("a.lua", "--- @include b.lua\n"),
            ("b.lua", "\n  --- @include a.lua\n"),
        ]);
        assert_eq!(circle.unwrap_err(), "b.lua:2: `a.lua` includes itself");
        assert_eq!(
            expand([("script.lua", "--- @include script.lua\n")]).unwrap_err(),
            "script.lua:1: `script.lua` includes itself"
        );
    }

    #[test]
    fn a_constant_that_does_not_exist_is_an_error_with_its_place() {
        assert_eq!(expand([("script.lua", "\nx = ${SIX}\n")]).unwrap_err(), "script.lua:2: there is no constant `SIX`");
        assert_eq!(expand([("script.lua", "x = ${SEVEN\n")]).unwrap_err(), "script.lua:1: `${` has no `}`");
    }
}

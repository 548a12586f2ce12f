//! Items of files become modules with names. Items that only tests have are left out.

use syn::spanned::Spanned as _;
use syn::visit::Visit as _;
use syn::{Item, ItemMod, ItemUse, Visibility};

use super::attributes::{attributes, is_for_tests};
use super::mentions::Mentions;
use super::uses::flatten;
use super::{Mention, MentionKind, Module, ModuleId, ROOT, Source};

impl Source {
    /// Reads a crate from its root. `load` returns the text of a file, or nothing where there is none.
    ///
    /// # Errors
    ///
    /// A file is missing, or is not Rust.
    pub(in crate::layers) fn read(root: &str, load: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let source = Self {
            files: vec![root.to_owned()],
            modules: vec![Module::default()],
            mentions: Vec::new(),
            code_in_root: Vec::new(),
        };
        let mut reader = Reader { source, load };
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        reader.file(ROOT, folder)?;
        Ok(reader.source)
    }
}

struct Reader<'a> {
    source: Source,
    load: &'a dyn Fn(&str) -> Option<String>,
}

impl Reader<'_> {
    /// Reads the file of a module. `folder` holds the files of its children.
    fn file(&mut self, module: ModuleId, folder: &str) -> Result<(), String> {
        let path = self.source.file(module).to_owned();
        let text = (self.load)(&path).ok_or_else(|| format!("cannot read {path}"))?;
        let file = syn::parse_file(&text).map_err(|error| format!("{path}:{}: {error}", error.span().start().line))?;
        if is_for_tests(&file.attrs) { Ok(()) } else { self.items(module, folder, &file.items) }
    }

    fn items(&mut self, module: ModuleId, folder: &str, items: &[Item]) -> Result<(), String> {
        for item in items.iter().filter(|item| !is_for_tests(attributes(item))) {
            match item {
                Item::Mod(child) => self.child(module, folder, child)?,
                Item::Use(item) => self.uses(module, item),
                _ => self.item(module, item),
            }
        }
        Ok(())
    }

    fn child(&mut self, parent: ModuleId, folder: &str, item: &ItemMod) -> Result<(), String> {
        let name = item.ident.to_string();
        let nested = format!("{folder}/{name}");
        let parent_module = &self.source.modules[parent];
        let child = Module {
            file: parent_module.file,
            top: Some(parent_module.top.clone().unwrap_or_else(|| name.clone())),
            parent: Some(parent),
            ..Module::default()
        };
        let id = self.source.modules.len();
        self.source.modules.push(child);
        self.source.modules[parent].children.insert(name, id);
        if let Some((_, items)) = &item.content {
            return self.items(id, &nested, items);
        }
        let [beside, within] = [format!("{nested}.rs"), format!("{nested}/mod.rs")];
        let path = if (self.load)(&within).is_some() { within } else { beside };
        self.source.modules[id].file = self.source.files.len();
        self.source.files.push(path);
        self.file(id, &nested)
    }

    fn uses(&mut self, module: ModuleId, item: &ItemUse) {
        let kind = if matches!(item.vis, Visibility::Inherited) { MentionKind::Import } else { MentionKind::Reexport };
        if module == ROOT && kind == MentionKind::Import {
            self.source.code_in_root.push(item.span().start().line);
        }
        if item.leading_colon.is_some() {
            return;
        }
        for (found, line) in flatten(&item.tree) {
            self.source.mentions.push(Mention { module, line, path: found.path.clone(), kind });
            self.source.modules[module].uses.push(found);
        }
    }

    fn item(&mut self, module: ModuleId, item: &Item) {
        if module == ROOT {
            self.source.code_in_root.push(item.span().start().line);
        }
        self.source.modules[module].items.extend(defined_name(item));
        let mut mentions = Mentions::default();
        mentions.visit_item(item);
        let mentions = mentions.found.into_iter();
        let mentions = mentions.map(|(path, line)| Mention { module, line, path, kind: MentionKind::Import });
        self.source.mentions.extend(mentions);
    }
}

fn defined_name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

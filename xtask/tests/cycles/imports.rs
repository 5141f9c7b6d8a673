//! Parses the files of a crate and lists the names that each file uses from the others, by Rust's
//! module rules. Tests and re-exports (`pub use`) do not count.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::Visit;

/// For each pair of files (from, to): the names of `to` that `from` uses.
pub(crate) type Imports = BTreeMap<(String, String), BTreeSet<String>>;

/// The imports of the crate with this root file. `shown` gives files their names.
pub(crate) fn imports(root: &Path, shown: &dyn Fn(&Path) -> String) -> Result<Imports, String> {
    let mut tree = Tree { modules: vec![] };
    let file = parsed(root)?;
    let folder = root.parent().unwrap_or(Path::new("")).to_owned();
    tree.add(None, root, &folder, &file.items)?;
    let mut found = Imports::new();
    for (at, module) in tree.modules.iter().enumerate() {
        for said in &module.said {
            let Some((home, name)) = tree.home(at, said, &mut vec![]) else { continue };
            let (from, to) = (&module.file, &tree.modules[home].file);
            if from != to {
                found.entry((shown(from), shown(to))).or_default().insert(name);
            }
        }
    }
    Ok(found)
}

fn parsed(file: &Path) -> Result<syn::File, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    syn::parse_file(&text).map_err(|e| format!("{}: {e}", file.display()))
}

/// The modules of a crate; the first is its root.
struct Tree {
    modules: Vec<Module>,
}

struct Module {
    file: PathBuf,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    defined: BTreeSet<String>,
    /// Names that `use` statements import, with their paths.
    brought: BTreeMap<String, Vec<String>>,
    /// Paths of `use path::*`.
    globs: Vec<Vec<String>>,
    /// Paths that the code of the module uses. A public `use` does not count, because it only
    /// re-exports.
    said: BTreeSet<Vec<String>>,
}

impl Tree {
    /// Adds a module and its child modules; `folder` contains the files of the children.
    fn add(
        &mut self,
        parent: Option<usize>,
        file: &Path,
        folder: &Path,
        items: &[syn::Item],
    ) -> Result<usize, String> {
        let at = self.modules.len();
        let mut reader = Reader {
            module: Module {
                file: file.to_owned(),
                parent,
                children: BTreeMap::new(),
                defined: BTreeSet::new(),
                brought: BTreeMap::new(),
                globs: vec![],
                said: BTreeSet::new(),
            },
            within: vec![],
            depth: 0,
        };
        items.iter().for_each(|i| reader.visit_item(i));
        let within = reader.within;
        self.modules.push(reader.module);
        for module in within {
            let name = module.ident.to_string();
            let folder = folder.join(&name);
            let child = match &module.content {
                Some((_, items)) => self.add(Some(at), file, &folder, items)?,
                None => {
                    let mut file = folder.with_extension("rs");
                    if !file.is_file() {
                        file = folder.join("mod.rs");
                    }
                    self.add(Some(at), &file, &folder, &parsed(&file)?.items)?
                }
            };
            self.modules[at].children.insert(name, child);
        }
        Ok(at)
    }

    /// The module that defines the name at the end of a path, as seen from the module `at`, and the
    /// name there. Imports in `within` are being followed, and are not followed again:
    /// `use half::half` names a crate.
    fn home(
        &self,
        at: usize,
        path: &[String],
        within: &mut Vec<(usize, Vec<String>)>,
    ) -> Option<(usize, String)> {
        let (first, rest) = path.split_first()?;
        let module = &self.modules[at];
        let step = match first.as_str() {
            "crate" => Some(0),
            "self" => Some(at),
            "super" => module.parent,
            name => module.children.get(name).copied(),
        };
        if let Some(step) = step {
            return self.home(step, rest, within);
        }
        if module.defined.contains(first) {
            return Some((at, first.clone()));
        }
        let mut follow = |import: &Vec<String>, rest: &[String]| {
            let this = (at, import.clone());
            if within.contains(&this) {
                return None;
            }
            within.push(this);
            let found = self.home(at, &[import, rest].concat(), within);
            within.pop();
            found
        };
        match module.brought.get(first) {
            Some(brought) => follow(brought, rest),
            None => module.globs.iter().find_map(|glob| follow(glob, path)),
        }
    }
}

/// Reads the items of a module, without those of child modules and of tests.
struct Reader<'a> {
    module: Module,
    within: Vec<&'a syn::ItemMod>,
    /// The number of items around the current item.
    depth: usize,
}

impl<'a> Visit<'a> for Reader<'a> {
    fn visit_item(&mut self, item: &'a syn::Item) {
        if of_tests(attributes(item)) {
            return;
        }
        match item {
            syn::Item::Mod(module) if self.depth == 0 => return self.within.push(module),
            syn::Item::Mod(_) => return,
            _ => {}
        }
        if let Some(name) = name(item).filter(|_| self.depth == 0) {
            self.module.defined.insert(name);
        }
        self.depth += 1;
        syn::visit::visit_item(self, item);
        self.depth -= 1;
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        let mut paths = vec![];
        flatten(&item.tree, &mut vec![], &mut paths);
        let hands_on = !matches!(item.vis, syn::Visibility::Inherited);
        for (path, name) in paths {
            match name {
                None => self.module.globs.push(path),
                Some(name) => {
                    if !hands_on {
                        self.module.said.insert(path.clone());
                    }
                    self.module.brought.insert(name, path);
                }
            }
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.leading_colon.is_none() {
            let said = path.segments.iter().map(|s| s.ident.to_string()).collect();
            self.module.said.insert(said);
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        tokens(call.tokens.clone(), &mut self.module.said);
        syn::visit::visit_macro(self, call);
    }

    fn visit_impl_item(&mut self, item: &'a syn::ImplItem) {
        let attributes = match item {
            syn::ImplItem::Fn(f) => &f.attrs[..],
            syn::ImplItem::Const(c) => &c.attrs,
            _ => &[],
        };
        if !of_tests(attributes) {
            syn::visit::visit_impl_item(self, item);
        }
    }

    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
}

/// The paths of a `use`, each with the imported name, or none for `*`.
fn flatten(
    tree: &syn::UseTree,
    before: &mut Vec<String>,
    found: &mut Vec<(Vec<String>, Option<String>)>,
) {
    match tree {
        syn::UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, found);
            before.pop();
        }
        syn::UseTree::Group(group) => group.items.iter().for_each(|t| flatten(t, before, found)),
        syn::UseTree::Glob(_) => found.push((before.clone(), None)),
        syn::UseTree::Name(syn::UseName { ident, .. })
        | syn::UseTree::Rename(syn::UseRename { ident, .. }) => {
            let mut path = before.clone();
            if ident != "self" {
                path.push(ident.to_string());
            }
            let name = match tree {
                syn::UseTree::Rename(renamed) => Some(renamed.rename.to_string()),
                _ => path.last().cloned(),
            };
            found.push((path, Some(name.unwrap_or_default())));
        }
    }
}

/// The paths of at least two names among the tokens of a macro call.
fn tokens(stream: TokenStream, said: &mut BTreeSet<Vec<String>>) {
    let (mut path, mut colons) = (vec![], 0);
    for token in stream {
        match token {
            TokenTree::Ident(name) if colons == 2 || path.is_empty() => path.push(name.to_string()),
            TokenTree::Punct(p) if p.as_char() == ':' && colons < 2 && !path.is_empty() => {
                colons += 1;
                continue;
            }
            other => {
                said.insert(std::mem::take(&mut path));
                match other {
                    TokenTree::Ident(name) => path.push(name.to_string()),
                    TokenTree::Group(group) => tokens(group.stream(), said),
                    _ => {}
                }
            }
        }
        colons = 0;
    }
    said.insert(path);
}

/// Whether the attributes restrict an item to tests.
fn of_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().filter(|a| a.path().is_ident("cfg")).any(|a| match &a.meta {
        syn::Meta::List(list) => {
            let text = list.tokens.to_string();
            text == "test" || text.starts_with("all (test") || text.starts_with("all(test")
        }
        _ => false,
    })
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    use syn::Item::*;
    match item {
        Const(i) => &i.attrs,
        Enum(i) => &i.attrs,
        Fn(i) => &i.attrs,
        Impl(i) => &i.attrs,
        Macro(i) => &i.attrs,
        Mod(i) => &i.attrs,
        Static(i) => &i.attrs,
        Struct(i) => &i.attrs,
        Trait(i) => &i.attrs,
        Type(i) => &i.attrs,
        Use(i) => &i.attrs,
        _ => &[],
    }
}

/// The name that an item defines.
fn name(item: &syn::Item) -> Option<String> {
    use syn::Item::*;
    let name = match item {
        Const(i) => &i.ident,
        Enum(i) => &i.ident,
        Fn(i) => &i.sig.ident,
        Macro(i) => i.ident.as_ref()?,
        Static(i) => &i.ident,
        Struct(i) => &i.ident,
        Trait(i) => &i.ident,
        Type(i) => &i.ident,
        Union(i) => &i.ident,
        _ => return None,
    };
    Some(name.to_string())
}

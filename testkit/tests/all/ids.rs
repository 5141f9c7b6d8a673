//! Tests the ids of statements, by which later stages refer to them: each statement of a parsed
//! module has an id of its own, and a copy of a module gets new ones.

use carbyne_ir::ast::visit::Walk;
use carbyne_ir::ast::{Module, NodeKey};
use carbyne_ir::{testing, text};
use carbyne_testkit::generate;
use proptest::prelude::*;
use std::collections::HashSet;

/// The ids of all statements, including those in `means` blocks.
fn ids(module: &Module) -> Vec<NodeKey> {
    Walk::new(&module.items).with_means().stmts().map(|s| s.id.key()).collect()
}

fn unique(module: &Module) -> bool {
    let all = ids(module);
    all.iter().collect::<HashSet<_>>().len() == all.len()
}

proptest! {
    #![proptest_config(testing::config(64))]

    #[test]
    fn parsing_gives_each_statement_an_id(module in generate::module()) {
        let text = text::print(&module);
        let parsed = text::parse(&text).map_err(|e| TestCaseError::fail(format!("{e}")))?;
        prop_assert!(unique(&parsed));
        // Parsing the text again gives an equal tree with other ids.
        let again = text::parse(&text).map_err(|e| TestCaseError::fail(format!("{e}")))?;
        prop_assert_eq!(&again, &parsed);
        let first: HashSet<NodeKey> = ids(&parsed).into_iter().collect();
        prop_assert!(ids(&again).iter().all(|id| !first.contains(id)));
    }

    #[test]
    fn copies_get_ids_of_their_own(module in generate::module()) {
        let mut twice = module.clone();
        twice.items.extend(module.items.iter().cloned());
        let same = twice.clone();
        prop_assert_eq!(twice.is_separate(), module.items.is_empty());
        twice.separate();
        prop_assert!(unique(&twice) && twice.is_separate());
        let mut again = same.clone();
        again.take_ids(&twice);
        prop_assert_eq!(ids(&again), ids(&twice));
        prop_assert_eq!(twice, same);
    }
}

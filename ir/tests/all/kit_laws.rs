//! Runs the laws of the kit for this crate's own layouts, over numbers and over symbols.

mod numbers {
    use carbyne_ir::kit::layout_laws;
    use carbyne_ir::layout::Layout;

    layout_laws!(Layout);
}

mod symbols {
    use carbyne_ir::kit::layout_laws;
    use carbyne_ir::kit::ours::OverSymbols;

    layout_laws!(OverSymbols, cases = 512);
}

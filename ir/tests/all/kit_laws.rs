//! The laws of the kit for this crate's own layouts.

use carbyne_ir::kit::layout_laws;
use carbyne_ir::layout::Layout;

layout_laws!(Layout);

//! Between the text of tiles and the search: when what happens may happen.
//!
//! A text says what happens, in order. [`pipeline`] writes loops with `stages=` as loops in which copies of later
//! iterations run ahead, through rings of buffers; the meaning stays that of the order. What must be ordered then is
//! planned from dependences, like in any other text.

pub(crate) mod pipeline;

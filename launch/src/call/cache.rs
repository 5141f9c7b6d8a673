//! Caches the [`Plan`]s (the prepared launches) of a call, at most 128. A plan belongs to certain
//! types, shapes, strides and devices of tensors and to the sizes that the caller states. A later
//! call with equal ones only checks the addresses and fills them in.

use super::{Call, Element, Given, Plan};
use crate::Fallible;
use carbyne_ir::expr::VarId;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Maximum number of plans. A new plan replaces the least recently used one.
const MOST: usize = 128;

/// Everything on which a plan depends.
type Key = SmallVec<[i64; 96]>;

/// A call with its plans.
pub struct Cache {
    call: Call,
    /// Plans, the most recently used one first.
    plans: Mutex<Vec<(Key, Plan)>>,
}

impl Cache {
    /// A call without plans.
    #[must_use]
    pub fn new(call: Call) -> Cache {
        Cache { call, plans: Mutex::default() }
    }

    /// The call.
    #[must_use]
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// Calls `then` with the plan of [`Call::plan`], which is created if it does not exist. Only
    /// one thread at a time uses plans.
    ///
    /// # Errors
    /// The errors of [`Call::plan`] and of `then`.
    pub fn with<T>(
        &self,
        given: &[Given<'_>],
        symbols: &BTreeMap<VarId, i64>,
        then: impl FnOnce(&mut Plan) -> Fallible<T>,
    ) -> Fallible<T> {
        let key = key(given, symbols);
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        match plans.iter().position(|(of, _)| *of == key) {
            Some(0) => {}
            Some(i) => plans[..=i].rotate_right(1),
            None => {
                let plan = self.call.plan(given, symbols)?;
                plans.truncate(MOST - 1);
                plans.insert(0, (key, plan));
            }
        }
        then(&mut plans[0].1)
    }
}

fn key(given: &[Given<'_>], symbols: &BTreeMap<VarId, i64>) -> Key {
    let mut key = Key::new();
    for given in given {
        let view = match given {
            Given::Nothing => {
                key.push(-1);
                continue;
            }
            Given::Number => {
                key.push(-2);
                continue;
            }
            Given::Tensor(view) => view,
        };
        let Element { code, bits, lanes } = view.element;
        let flags = u8::from(view.is_read_only) + 2 * u8::from(view.strides.is_some());
        let [a, b] = lanes.to_ne_bytes();
        let device = (i64::from(view.device.kind) << 32) ^ i64::from(view.device.number);
        let rank = view.shape.len() as i64;
        key.extend([i64::from_ne_bytes([code, bits, a, b, flags, 0, 0, 0]), device, rank]);
        key.extend_from_slice(view.shape);
        key.extend_from_slice(view.strides.unwrap_or_default());
    }
    for (var, value) in symbols {
        key.extend([var.index() as i64, *value]);
    }
    key
}

//! Queues groups of asynchronous work: each thread has one queue for `cp.async` and one for bulk
//! copies out of shared memory, and each warp has one for `wgmma`. A commit closes the open group.
//! A wait takes the oldest groups until at most a given number remain.

use std::collections::VecDeque;

/// The contents of a group.
pub(crate) trait Content: Default {
    /// Whether the group needs no work at a wait.
    fn is_nothing(&self) -> bool;
}

/// The groups of a thread or a warp, the oldest first. An empty group counts, but is not stored.
pub(crate) struct Groups<T> {
    /// The group that is not yet committed.
    pub open: T,
    committed: u64,
    /// The committed groups, with their numbers.
    waiting: VecDeque<(u64, T)>,
}

impl<T: Content> Default for Groups<T> {
    fn default() -> Self {
        Groups { open: T::default(), committed: 0, waiting: VecDeque::new() }
    }
}

impl<T: Content> Groups<T> {
    /// Closes the open group.
    pub(crate) fn commit(&mut self) {
        let group = std::mem::take(&mut self.open);
        if !group.is_nothing() {
            self.waiting.push_back((self.committed, group));
        }
        self.committed += 1;
    }

    /// Removes the oldest group that is complete when `left` groups remain.
    pub(crate) fn next_complete(&mut self, left: usize) -> Option<T> {
        let complete = self.committed.saturating_sub(left as u64);
        match self.waiting.front() {
            Some((number, _)) if *number < complete => self.waiting.pop_front().map(|(_, g)| g),
            _ => None,
        }
    }

    /// The groups that are complete in some respect when `left` groups remain.
    pub(crate) fn complete(&mut self, left: usize) -> impl Iterator<Item = &mut T> {
        let complete = self.committed.saturating_sub(left as u64);
        let old = self.waiting.iter_mut().take_while(move |(number, _)| *number < complete);
        old.map(|(_, group)| group)
    }

    /// All groups, committed or open.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.waiting.iter().map(|(_, group)| group).chain([&self.open])
    }

    /// All groups, mutable.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.waiting.iter_mut().map(|(_, group)| group).chain([&mut self.open])
    }

    /// Removes the oldest groups whose contents move to the next committed group.
    pub(crate) fn merge_oldest(&mut self, moved: impl Fn(&mut T, &mut T) -> bool) {
        while let [Some((_, oldest)), Some((_, next))] = {
            let mut groups = self.waiting.iter_mut();
            [groups.next(), groups.next()]
        } && moved(oldest, next)
        {
            self.waiting.pop_front();
        }
    }
}

impl<T> Content for Vec<T> {
    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_groups_count() {
        let mut groups: Groups<Vec<u8>> = Groups::default();
        groups.open.push(1);
        groups.commit();
        groups.commit();
        groups.open.push(2);
        groups.commit();
        assert_eq!(groups.next_complete(3), None);
        assert_eq!(groups.complete(2).count(), 1);
        assert_eq!(groups.next_complete(2), Some(vec![1]));
        assert_eq!(groups.next_complete(1), None, "the second has nothing in it");
        for _ in 0..1_000_000 {
            groups.commit();
        }
        assert_eq!(groups.waiting.len(), 1);
        assert_eq!(groups.next_complete(1_000_001), None);
        assert_eq!(groups.next_complete(1_000_000), Some(vec![2]));
        groups.open.push(3);
        assert_eq!(groups.iter().flatten().count(), 1);
        groups.iter_mut().for_each(|group| group.push(4));
        assert_eq!(groups.iter().flatten().copied().collect::<Vec<u8>>(), [3, 4]);
    }
}

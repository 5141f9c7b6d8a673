//! Groups of asynchronous work, closed by a commit and waited for by how many may be left.

use std::collections::VecDeque;

/// What can be in a group.
pub(crate) trait Content: Default {
    /// Whether a wait has nothing to do for it.
    fn is_nothing(&self) -> bool;
}

/// A thread's or a warp's groups, the oldest first. One with nothing in it takes no memory, and
/// counts.
pub(crate) struct Groups<T> {
    /// Not yet committed.
    pub open: T,
    committed: u64,
    /// By their numbers.
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

    /// Takes out the oldest group of those that are complete when so many are left.
    pub(crate) fn next_complete(&mut self, left: usize) -> Option<T> {
        let complete = self.committed.saturating_sub(left as u64);
        match self.waiting.front() {
            Some((number, _)) if *number < complete => self.waiting.pop_front().map(|(_, g)| g),
            _ => None,
        }
    }

    /// The groups that are complete, in some respect, when so many are left.
    pub(crate) fn complete(&mut self, left: usize) -> impl Iterator<Item = &mut T> {
        let complete = self.committed.saturating_sub(left as u64);
        let old = self.waiting.iter_mut().take_while(move |(number, _)| *number < complete);
        old.map(|(_, group)| group)
    }

    /// What is in any of them, committed or not.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.waiting.iter().map(|(_, group)| group).chain([&self.open])
    }

    /// The same, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.waiting.iter_mut().map(|(_, group)| group).chain([&mut self.open])
    }

    /// Lets the oldest groups go whose content was moved to the next one that is committed.
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
    fn groups_without_anything_count() {
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

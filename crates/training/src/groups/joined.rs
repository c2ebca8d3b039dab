//! Things that are joined one by one, and the classes that this makes.

/// Classes of things that are joined.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    /// By thing, its class; classes are numbered by their first thing.
    pub(crate) of: Vec<u32>,
    /// By class, its first thing.
    pub(crate) first: Vec<usize>,
    /// By class, how many things are in it.
    pub(crate) count: Vec<usize>,
}

/// Things that are joined one by one.
pub(crate) struct Joined(Vec<usize>);

impl Joined {
    pub(crate) fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    /// The thing that stands for all that this one is joined with.
    pub(crate) fn of(&mut self, mut thing: usize) -> usize {
        while self.0[thing] != thing {
            self.0[thing] = self.0[self.0[thing]];
            thing = self.0[thing];
        }
        thing
    }

    /// Joins two; says whether they were not joined before.
    pub(crate) fn join(&mut self, left: usize, right: usize) -> bool {
        let (left, right) = (self.of(left), self.of(right));
        // The first one stands for all.
        self.0[left.max(right)] = left.min(right);
        left != right
    }

    pub(crate) fn classes(mut self) -> Classes {
        let mut number = vec![u32::MAX; self.0.len()];
        let mut classes = Classes { of: Vec::with_capacity(self.0.len()), first: Vec::new(), count: Vec::new() };
        for thing in 0..self.0.len() {
            let first = self.of(thing);
            if first == thing {
                number[thing] = u32::try_from(classes.first.len()).expect("things are counted in 24 bits");
                classes.first.push(thing);
                classes.count.push(0);
            }
            classes.of.push(number[first]);
            classes.count[number[first] as usize] += 1;
        }
        classes
    }
}

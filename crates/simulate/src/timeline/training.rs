//! Training: layers to the operations of one iteration.
//!
//! The forward pass goes through all layers, the backward pass back through them, then parameters are updated.
//!
//! - **Replicated** (data parallel): each gradient waits in a bucket; once a bucket has its bytes, one allreduce adds
//!   it up while the backward pass goes on. The update waits for all of them. Zhao 2026 §A.1.4.
//! - **Sharded** (fully sharded data parallel): an allgather brings a layer's parameters before its forward and before
//!   its backward pass, and a reduce-scatter adds up its gradients after it. Zhao 2026 §4.6.4.
//! - **Experts**: a layer with tokens to exchange has an all-to-all before and after its computation, in both passes,
//!   for which the computation waits. Zhao 2026 §A.1.4.

use canopy_schedule::CollectiveKind;

use crate::timeline::program::{Call, OPERATIONS_MAX, Operation, Order, Overlap, Program, ProgramError, Work};

/// A layer of a model. Times are those of one rank, in picoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// For people.
    pub name: String,
    /// Its forward pass.
    pub forward_ps: u64,
    /// Its backward pass.
    pub backward_ps: u64,
    /// Bytes of its parameters, and of their gradients: those that all ranks have in common; 0 for none.
    pub parameters_bytes: u64,
    /// Bytes that each rank has for all ranks in each all-to-all; 0 for a layer without experts.
    pub exchange_bytes: u64,
}

/// Whether the backward pass gathers parameters once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resharding {
    /// They are dropped after the forward pass, and gathered again.
    AfterForward,
    /// They are kept.
    Never,
}

/// Where parameters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parallelism {
    /// Every rank has all.
    Replicated {
        /// Gradients wait until a bucket has this many bytes.
        bucket_bytes: u64,
    },
    /// Every rank has its share.
    Sharded {
        /// How many layers are gathered ahead of the one that computes; with 0 an allgather waits for the layer before.
        ahead: u32,
        /// Whether the backward pass gathers once more.
        resharding: Resharding,
    },
    /// Parameters and gradients are not exchanged.
    Apart,
}

/// A model, and how it is trained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Training {
    /// In the order of the forward pass.
    pub layers: Vec<Layer>,
    /// Where parameters are.
    pub parallelism: Parallelism,
    /// The update of parameters, in picoseconds.
    pub update_ps: u64,
}

impl Training {
    /// The operations of one iteration.
    ///
    /// # Errors
    /// No layer, and more operations than a program may have. O(layers).
    pub fn program(&self, overlap: Overlap) -> Result<Program, ProgramError> {
        let mut list = List::default();
        match self.parallelism {
            Parallelism::Replicated { bucket_bytes } => self.replicated(&mut list, Some(bucket_bytes))?,
            Parallelism::Apart => self.replicated(&mut list, None)?,
            Parallelism::Sharded { ahead, resharding } => self.sharded(&mut list, ahead, resharding)?,
        }
        if self.update_ps > 0 {
            let after = list.chain.into_iter().chain(list.gradients.clone()).collect();
            list.add("update".to_owned(), Work::Compute { time_ps: self.update_ps }, after)?;
        }
        Program::new(list.operations, Order::Listed, overlap)
    }

    /// Both passes; gradients are added up in buckets, if at all.
    fn replicated(&self, list: &mut List, bucket_bytes: Option<u64>) -> Result<(), ProgramError> {
        for layer in &self.layers {
            list.pass(layer, Pass::Forward, None)?;
        }
        let mut bucket = 0_u64;
        let mut filled_by = None;
        for layer in self.layers.iter().rev() {
            let computed = list.pass(layer, Pass::Backward, None)?;
            let Some(bucket_bytes) = bucket_bytes.filter(|_| layer.parameters_bytes > 0) else { continue };
            bucket = bucket.saturating_add(layer.parameters_bytes);
            filled_by = Some(computed);
            if bucket >= bucket_bytes {
                list.gradient("bucket", CollectiveKind::Allreduce, std::mem::take(&mut bucket), computed)?;
            }
        }
        match filled_by {
            Some(last) if bucket > 0 => list.gradient("bucket", CollectiveKind::Allreduce, bucket, last),
            _ => Ok(()),
        }
    }

    /// Both passes with parameters that are gathered before and gradients that are divided after.
    fn sharded(&self, list: &mut List, ahead: u32, resharding: Resharding) -> Result<(), ProgramError> {
        let forward: Vec<&Layer> = self.layers.iter().collect();
        let backward: Vec<&Layer> = self.layers.iter().rev().collect();
        list.gathered(&forward, Pass::Forward, Some(ahead))?;
        let again = Some(ahead).filter(|_| resharding == Resharding::AfterForward);
        list.gathered(&backward, Pass::Backward, again)
    }
}

/// Directions through the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Forward,
    Backward,
}

impl Pass {
    const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
        }
    }

    const fn time_ps(self, layer: &Layer) -> u64 {
        match self {
            Self::Forward => layer.forward_ps,
            Self::Backward => layer.backward_ps,
        }
    }
}

/// Operations so far.
#[derive(Default)]
struct List {
    operations: Vec<Operation>,
    /// What the next computation waits for: the one before it, or the all-to-all behind that.
    chain: Option<u32>,
    /// What adds up gradients: the update waits for all.
    gradients: Vec<u32>,
}

impl List {
    fn add(&mut self, name: String, work: Work, after: Vec<u32>) -> Result<u32, ProgramError> {
        let too_many = ProgramError::TooMany { what: "operations", limit: OPERATIONS_MAX };
        if self.operations.len() >= OPERATIONS_MAX {
            return Err(too_many);
        }
        let number = u32::try_from(self.operations.len()).map_err(|_| too_many)?;
        self.operations.push(Operation { name, work, after });
        Ok(number)
    }

    fn call(&mut self, name: String, kind: CollectiveKind, bytes: u64, after: Vec<u32>) -> Result<u32, ProgramError> {
        self.add(name, Work::Collective(Call { kind, root: None, size_bytes: bytes }), after)
    }

    /// One layer in one direction, with the exchanges of its experts, once its parameters are there; its computation.
    fn pass(&mut self, layer: &Layer, pass: Pass, gathered: Option<u32>) -> Result<u32, ProgramError> {
        let name = format!("{} {}", layer.name, pass.name());
        let exchange = |list: &mut Self, what: &str| {
            let after = list.chain.into_iter().collect();
            list.call(format!("{name}: {what}"), CollectiveKind::AllToAll, layer.exchange_bytes, after)
        };
        if layer.exchange_bytes > 0 {
            self.chain = Some(exchange(self, "tokens out")?);
        }
        let after = self.chain.into_iter().chain(gathered).collect();
        let computed = self.add(name.clone(), Work::Compute { time_ps: pass.time_ps(layer) }, after)?;
        self.chain = Some(computed);
        if layer.exchange_bytes > 0 {
            self.chain = Some(exchange(self, "tokens back")?);
        }
        Ok(computed)
    }

    /// Adds up gradients once a computation has them.
    fn gradient(&mut self, name: &str, kind: CollectiveKind, bytes: u64, computed: u32) -> Result<(), ProgramError> {
        let name = format!("{name} {}", self.gradients.len() + 1);
        let number = self.call(name, kind, bytes, vec![computed])?;
        self.gradients.push(number);
        Ok(())
    }

    /// One pass through the layers; `None` ahead: parameters are not gathered.
    ///
    /// The allgather of layer `i` waits for the computation of layer `i − ahead − 1`, so that at most `ahead + 1`
    /// layers are in memory. It is listed before the computation of layer `i − ahead`, as runtimes start it.
    fn gathered(&mut self, layers: &[&Layer], pass: Pass, ahead: Option<u32>) -> Result<(), ProgramError> {
        let start = self.chain;
        let mut computed: Vec<u32> = Vec::with_capacity(layers.len());
        let mut there: Vec<Option<u32>> = Vec::with_capacity(layers.len());
        for (place, &layer) in layers.iter().enumerate() {
            let until =
                ahead.map_or(0, |ahead| place.saturating_add(ahead as usize).saturating_add(1)).min(layers.len());
            while there.len() < until {
                let wanted = there.len();
                let freed = ahead.and_then(|ahead| wanted.checked_sub(ahead as usize + 1));
                let after = freed.map_or(start, |freed| computed.get(freed).copied());
                let next = layers[wanted];
                let name = format!("{} {}: parameters", next.name, pass.name());
                let bytes = next.parameters_bytes;
                let gather =
                    |list: &mut Self| list.call(name, CollectiveKind::Allgather, bytes, after.into_iter().collect());
                there.push(if bytes > 0 { Some(gather(self)?) } else { None });
            }
            let own = self.pass(layer, pass, there.get(place).copied().flatten())?;
            computed.push(own);
            if pass == Pass::Backward && layer.parameters_bytes > 0 {
                self.gradient("gradients", CollectiveKind::ReduceScatter, layer.parameters_bytes, own)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

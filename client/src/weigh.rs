//! The weighing of faults.

use std::time::Duration;

use canopy_proto::v1::weigh_faults_event::Event;
use canopy_proto::v1::{WeighFaultsProgress, WeighFaultsRequest, WeighFaultsStarted, WeighedFault};

use crate::client::{Client, within};
use crate::error::{ClientError, from_status};

impl Client {
    /// Has the server weigh single faults of a network; calls `progress` while it does. Returns the network without the faults, and
    /// the groups of faults, most harmful first.
    ///
    /// `deadline` is as for [`Client::plan`], and covers all of it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn weigh_faults(
        &self,
        request: WeighFaultsRequest,
        deadline: Option<Duration>,
        mut progress: impl FnMut(&WeighFaultsProgress),
    ) -> Result<(WeighFaultsStarted, Vec<WeighedFault>), ClientError> {
        let mut service = self.analysis.clone();
        let request = self.limited(request, deadline);
        let weighed = async {
            let failed = |status| from_status(&status, deadline);
            let mut events = service.weigh_faults(request).await.map_err(failed)?.into_inner();
            let (mut started, mut groups) = (None, Vec::new());
            while let Some(message) = events.message().await.map_err(failed)? {
                match message.event {
                    Some(Event::Started(first)) => started = Some(first),
                    Some(Event::Progress(so_far)) => progress(&so_far),
                    Some(Event::Weighed(weighed)) => groups.extend(weighed.groups),
                    // Of a later version.
                    None => {}
                }
            }
            let started = started.ok_or(ClientError::Protocol { what: "the stream begins with no bound" })?;
            if groups.len() != started.groups as usize {
                return Err(ClientError::Protocol { what: "the stream ended before all faults were sent" });
            }
            Ok((started, groups))
        };
        within(deadline, weighed).await
    }
}

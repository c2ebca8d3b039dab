//! Messages in parts: what every caller of a plan gets is encoded once, and sent to all of them from one place in memory.
//!
//! A plan carries its proof, which may have a hundred thousand links. Decoded it takes many times the bytes that it has on
//! the wire, and whoever copied it for each call would hold it once more for each. So handlers answer with parts, some
//! of which are shared, and [`in_parts`] sends those in place of the message that the generated code would encode.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{BufMut as _, Bytes, BytesMut};
use canopy_proto::v1::{ContentPiece, Plan, PlanEvent, PlanResponse};
use http_body::{Body as HttpBody, Frame};
use parking_lot::Mutex;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use tokio_stream::Stream;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::{Response, Status};

/// Numbers of the fields that are put together here, as the protocol has them.
const REPLY_PLAN: u32 = 1;
const PIECE_DATA: u32 = 3;

/// The field of an event that brings a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rpc) enum PlanField {
    Final = 4,
    Candidate = 6,
}

/// An encoded message, in parts that follow one another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts(Vec<Bytes>);

impl Parts {
    /// A message that is nobody else's.
    pub(in crate::rpc) fn of(message: &impl Message) -> Self {
        Self(vec![message.encode_to_vec().into()])
    }

    /// A reply, given without its plan, and the plan as it is encoded.
    pub(in crate::rpc) fn reply(reply: &PlanResponse, plan: Bytes) -> Self {
        Self(vec![plan]).into_field(REPLY_PLAN).followed_by(Self::of(reply))
    }

    /// A plan as it is encoded, and what is said of it besides.
    pub(in crate::rpc) fn plan(plan: Bytes, besides: &Plan) -> Self {
        Self(vec![plan]).followed_by(Self::of(besides))
    }

    /// The event of a stream that brings such a reply.
    pub(in crate::rpc) fn plan_event(sequence: u64, field: PlanField, reply: Self) -> Self {
        Self::of(&PlanEvent { sequence, event: None }).followed_by(reply.into_field(field as u32))
    }

    /// The event of a stream that brings a piece of a file.
    pub(in crate::rpc) fn piece_event(sequence: u64, piece: ContentPiece) -> Self {
        /// Of the event.
        const CONTENT: u32 = 5;
        Self::of(&PlanEvent { sequence, event: None }).followed_by(Self::piece(piece).into_field(CONTENT))
    }

    /// The same of a stream of one file.
    pub(in crate::rpc) fn fetched_piece(piece: ContentPiece) -> Self {
        /// Of the event.
        const CONTENT: u32 = 2;
        Self::piece(piece).into_field(CONTENT)
    }

    /// A piece of a file, whose bytes it shares.
    fn piece(mut piece: ContentPiece) -> Self {
        let data = Self(vec![std::mem::take(&mut piece.data)]).into_field(PIECE_DATA);
        let digest = ContentPiece { sha256: std::mem::take(&mut piece.sha256), ..ContentPiece::default() };
        Self::of(&piece).followed_by(data).followed_by(Self::of(&digest))
    }

    fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// The same as a field of another message.
    fn into_field(self, tag: u32) -> Self {
        let mut head = BytesMut::new();
        encode_key(tag, WireType::LengthDelimited, &mut head);
        encode_varint(self.len() as u64, &mut head);
        Self(vec![head.freeze()]).followed_by(self)
    }

    fn followed_by(mut self, next: Self) -> Self {
        self.0.extend(next.0.into_iter().filter(|part| !part.is_empty()));
        self
    }

    /// The message as gRPC frames it.
    fn framed(self) -> impl Iterator<Item = Bytes> {
        let mut head = BytesMut::with_capacity(5);
        head.put_u8(0);
        // What is longer would have been refused where it was made.
        head.put_u32(u32::try_from(self.len()).unwrap_or(u32::MAX));
        std::iter::once(head.freeze()).chain(self.0)
    }
}

type PartsStream = Pin<Box<dyn Stream<Item = Result<Parts, Status>> + Send>>;

/// What is sent in place of the body of a response; goes with the response. Taken once.
#[derive(Clone)]
struct InParts(Arc<Mutex<Option<PartsStream>>>);

/// A response that consists of these messages, whatever else it says.
pub(in crate::rpc) fn respond<T>(
    shell: T,
    messages: impl Stream<Item = Result<Parts, Status>> + Send + 'static,
) -> Response<T> {
    let mut response = Response::new(shell);
    response.extensions_mut().insert(InParts(Arc::new(Mutex::new(Some(Box::pin(messages))))));
    response
}

/// The answer in parts, where a handler has made it so; else the same.
pub(crate) fn in_parts(_path: &str, mut response: http::Response<Body>) -> http::Response<Body> {
    let parts = response.extensions_mut().remove::<InParts>();
    match parts.and_then(|parts| parts.0.lock().take()) {
        Some(messages) => response.map(|_| Body::new(PartsBody { messages: Some(messages), waiting: VecDeque::new() })),
        None => response,
    }
}

/// The body of an answer in parts, which end with the status of the call.
struct PartsBody {
    /// None: the status has been sent.
    messages: Option<PartsStream>,
    waiting: VecDeque<Bytes>,
}

impl HttpBody for PartsBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        loop {
            if let Some(part) = this.waiting.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(part))));
            }
            let Some(messages) = &mut this.messages else { return Poll::Ready(None) };
            let status = match ready!(messages.as_mut().poll_next(context)) {
                Some(Ok(parts)) => {
                    this.waiting.extend(parts.framed());
                    continue;
                }
                Some(Err(status)) => status,
                None => Status::ok(""),
            };
            this.messages = None;
            let mut trailers = http::HeaderMap::new();
            return Poll::Ready(Some(status.add_header(&mut trailers).map(|()| Frame::trailers(trailers))));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.messages.is_none() && self.waiting.is_empty()
    }
}

/// A response that is one message.
pub(in crate::rpc) fn one<T>(shell: T, message: Parts) -> Response<T> {
    respond(shell, tokio_stream::once(Ok(message)))
}

#[cfg(test)]
mod tests {
    use canopy_proto::v1::FetchPlanFileEvent;
    use canopy_proto::v1::plan_event::Event;
    use canopy_proto::v1::{CacheOutcome, Quality, Warning};

    use super::*;

    fn whole(parts: &Parts) -> Vec<u8> {
        parts.0.concat()
    }

    #[test]
    fn parts_are_the_bytes_of_the_whole_message() {
        let plan = Plan { name: "plans/x".to_owned(), quality: Some(Quality::default()), ..Plan::default() };
        let warnings = vec![Warning { code: "W".to_owned(), text: "w".repeat(300) }];
        let reply = PlanResponse { cache: CacheOutcome::Hit.into(), warnings, ..PlanResponse::default() };
        let encoded = Bytes::from(plan.encode_to_vec());
        let full = PlanResponse { plan: Some(plan.clone()), ..reply.clone() };
        let parts = Parts::reply(&reply, encoded.clone());
        assert_eq!(whole(&parts), full.encode_to_vec());
        assert!(parts.0.iter().any(|part| part.as_ptr() == encoded.as_ptr()), "the plan is not copied");
        for (field, event) in
            [(PlanField::Final, Event::Final(full.clone())), (PlanField::Candidate, Event::Candidate(full.clone()))]
        {
            let event = PlanEvent { sequence: 7, event: Some(event) };
            assert_eq!(whole(&Parts::plan_event(7, field, parts.clone())), event.encode_to_vec());
        }
        let data = Bytes::from(vec![7; 1000]);
        for (sequence, offset) in [(0, 0), (3, 1 << 40)] {
            let piece = ContentPiece { artifact: 2, offset, data: data.clone(), sha256: "ab".repeat(32) };
            let parts = Parts::piece_event(sequence, piece.clone());
            assert!(parts.0.iter().any(|part| part.as_ptr() == data.as_ptr()), "the piece is not copied");
            let event = PlanEvent { sequence, event: Some(Event::Content(piece.clone())) };
            assert_eq!(whole(&parts), event.encode_to_vec());
            let fetched = Parts::fetched_piece(piece.clone());
            assert!(fetched.0.iter().any(|part| part.as_ptr() == data.as_ptr()), "the piece is not copied");
            let event = Some(canopy_proto::v1::fetch_plan_file_event::Event::Content(piece));
            let event = FetchPlanFileEvent { event, ..FetchPlanFileEvent::default() };
            assert_eq!(whole(&fetched), event.encode_to_vec());
        }
        let successor = Plan { superseded_by: "plans/y".to_owned(), ..Plan::default() };
        let read = Plan::decode(&*whole(&Parts::plan(encoded, &successor))).unwrap();
        assert_eq!(read, Plan { superseded_by: "plans/y".to_owned(), ..plan });
        let empty = Parts::reply(&PlanResponse::default(), Bytes::new());
        assert_eq!(PlanResponse::decode(&*whole(&empty)).unwrap().plan, Some(Plan::default()));
    }
}

//! The first bytes of a connection: every HTTP/2 client sends the same ones (RFC 9113, section 3.4).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection whose preface has come, and is still to be read by who speaks HTTP/2.
#[derive(Debug)]
pub(super) struct Prefaced<I> {
    stream: I,
    unread: &'static [u8],
}

impl<I: AsyncRead + Unpin> Prefaced<I> {
    /// Reads the preface. Takes as long as the other end likes.
    ///
    /// # Errors
    /// The connection ended, or says something else.
    pub(super) async fn read(mut stream: I) -> io::Result<Self> {
        let mut buffer = [0; PREFACE.len()];
        let mut rest = &PREFACE[..];
        while !rest.is_empty() {
            let room = buffer.get_mut(..rest.len()).unwrap_or_default();
            let count = stream.read(room).await?;
            let found = room.get(..count).unwrap_or_default();
            rest = match rest.strip_prefix(found) {
                Some(rest) if count > 0 => rest,
                _ => return Err(io::ErrorKind::InvalidData.into()),
            };
        }
        Ok(Self { stream, unread: PREFACE })
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Prefaced<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unread.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let (now, later) = self.unread.split_at(self.unread.len().min(buffer.remaining()));
        buffer.put_slice(now);
        self.unread = later;
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Prefaced<I> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

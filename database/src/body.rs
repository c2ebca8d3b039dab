//! Records that are too large for a row: in pieces, written before and read after it.

use deadpool_postgres::Object;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::error::DatabaseError;

/// Longest record in a row.
pub(crate) const SMALL_BYTES: usize = 16 << 10;
/// Length of all pieces but the last.
const PIECE_BYTES: usize = 1 << 20;
/// Pieces on their way at once.
const PIECES_AT_ONCE: usize = 4;

/// Writes a record in pieces and returns their number. The change that puts the record refers to them by it.
pub(crate) async fn write(client: &Object, record: &[u8]) -> Result<i64, DatabaseError> {
    let body: i64 = client.query_one("insert into bodies default values returning body", &[]).await?.get(0);
    let insert = client.prepare_cached("insert into pieces (body, number, bytes) values ($1, $2, $3)").await?;
    let pieces = (0_i32..).zip(record.chunks(PIECE_BYTES));
    let written = pieces.map(|(number, bytes)| {
        let insert = &insert;
        async move { client.execute(insert, &[&body, &number, &bytes]).await }
    });
    stream::iter(written).buffered(PIECES_AT_ONCE).try_for_each(async |_| Ok(())).await?;
    Ok(body)
}

/// Reads a record as it is in the database now, if it is there.
pub(crate) async fn read(client: &Object, space: i16, key: &[u8]) -> Result<Option<Vec<u8>>, DatabaseError> {
    // In one statement: what it sees belongs together.
    let select = "select r.size, r.digest, r.small, p.bytes from records r left join pieces p on p.body = r.body
                  where r.space = $1 and r.key = $2 and r.size is not null order by p.number";
    let select = client.prepare_cached(select).await?;
    let rows = client.query(&select, &[&space, &key]).await?;
    let Some(first) = rows.first() else { return Ok(None) };
    let (size, digest): (i64, &[u8]) = (first.try_get(0)?, first.try_get(1)?);
    let record = match first.try_get::<_, Option<Vec<u8>>>(2)? {
        Some(small) => small,
        None => {
            let mut record = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
            for row in &rows {
                record.extend_from_slice(row.try_get::<_, Option<&[u8]>>(3)?.unwrap_or_default());
            }
            record
        }
    };
    if record.len() as i64 != size || blake3::hash(&record).as_bytes() != digest {
        let reason = format!("{} bytes instead of {size} in space {space}, or others", record.len());
        return Err(DatabaseError::Damaged { reason });
    }
    Ok(Some(record))
}

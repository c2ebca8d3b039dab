# syntax=docker/dockerfile:1

# Names may be given to other images at any time. A build that is kept states digests: docs/operations/deploy.md.
ARG RUST_IMAGE=rust:1.95-slim-bookworm
ARG RUNTIME_IMAGE=gcr.io/distroless/cc-debian12:nonroot

FROM ${RUST_IMAGE} AS build
WORKDIR /source
COPY Cargo.toml Cargo.lock ./
COPY crates crates
COPY proto proto
COPY wire wire
COPY examples examples
COPY migrations migrations
COPY database database
COPY store store
COPY service service
COPY server server
COPY client client
COPY cli cli
COPY executors executors
COPY tests tests
COPY benches benches
# The revision of the source, for canopy_build_info: the history is not among the files of the build.
ARG CANOPY_REVISION=unknown
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --locked --release --package canopy-server --bin canopyd --package canopy-cli --bin canopy \
        --features canopy-cli/tools,canopy-cli/embedded \
    && install -D --target-directory=/image/bin target/release/canopyd target/release/canopy \
    && install -d --mode=0700 /image/data

# glibc and nothing else: no shell, no package manager; user and group 65532.
FROM ${RUNTIME_IMAGE}
LABEL org.opencontainers.image.title="canopy" \
      org.opencontainers.image.description="Planner of collective communication: canopyd and canopy" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /image/bin/ /usr/local/bin/
# The only place that is written to.
COPY --from=build --chown=65532:65532 /image/data/ /var/lib/canopy/
COPY LICENSE /usr/share/doc/canopy/LICENSE
ENV CANOPY_DATA_DIR=/var/lib/canopy
VOLUME ["/var/lib/canopy"]
EXPOSE 7423 7424
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/canopyd"]

# Two images from one file, both of one static program and nothing else:
#
#   docker build -t marchwarden .                       the server on stdin and stdout
#   docker build --target http -t marchwarden:http .    the server on port 8642
#
# There is no shell in them, and no browser: pages that only show their text after
# running scripts are read without it.

FROM --platform=$BUILDPLATFORM golang:1.26-alpine AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=0.1.0
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /out/marchwarden ./cmd/marchwarden \
    && mkdir /out/data

FROM gcr.io/distroless/static:nonroot AS base
LABEL io.modelcontextprotocol.server.name="com.unbiasedgeek.labbity.forgejo/marchwarden" \
      org.opencontainers.image.title="Marchwarden" \
      org.opencontainers.image.description="Research whose every factual sentence cites an excerpt that stands in a stored document" \
      org.opencontainers.image.source="https://forgejo.labbity.unbiasedgeek.com/archeious/marchwarden" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/marchwarden /marchwarden
# A named volume takes its owner from here.
COPY --from=build --chown=65532:65532 /out/data /data
ENV MARCHWARDEN_HOME=/data
VOLUME /data
WORKDIR /data
USER nonroot
EXPOSE 8642
ENTRYPOINT ["/marchwarden"]

# A health check needs the port, which the image for stdin and stdout does not open.
FROM base AS http
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["/marchwarden", "mcp", "ping"]
CMD ["serve", "pi", "--http", "0.0.0.0:8642"]

FROM base AS stdio
CMD ["serve", "pi"]

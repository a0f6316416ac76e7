# For who has a container engine:
#   docker build --target weir-extproc --build-arg VERSION=$(git describe --tags --always) .
# "make images" makes the same images without one, and is what is tested.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
RUN mkdir /out && for command in weir-extproc weir-controller weirctl; do \
      CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /out/$command ./cmd/$command \
      || exit 1; \
    done

# The data plane. weirctl goes with it, since the admin API listens on loopback: kubectl exec … -- weirctl status.
FROM scratch AS weir-extproc
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/weir-extproc /out/weirctl /usr/local/bin/
ENV PATH=/usr/local/bin
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/weir-extproc"]

FROM scratch AS weir-controller
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/weir-controller /usr/local/bin/
ENV PATH=/usr/local/bin
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/weir-controller"]

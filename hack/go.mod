module github.com/capstan-dev/capstan/hack

go 1.26.0

require (
	github.com/alecthomas/kong v1.16.1
	github.com/google/go-cmp v0.7.0
	github.com/google/go-containerregistry v0.22.1
	github.com/klauspost/compress v1.19.2
	github.com/ulikunitz/xz v0.5.17
	golang.org/x/mod v0.41.0
	golang.org/x/sync v0.22.0
	golang.org/x/sys v0.47.0
	sigs.k8s.io/yaml v1.6.0
)

require (
	github.com/docker/cli v29.7.2+incompatible // indirect
	github.com/docker/docker-credential-helpers v0.9.3 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	github.com/sirupsen/logrus v1.9.4 // indirect
	go.yaml.in/yaml/v2 v2.4.2 // indirect
	gotest.tools/v3 v3.5.2 // indirect
)

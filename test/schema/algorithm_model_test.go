// SPDX-License-Identifier: Apache-2.0

package schema

import "strings"

var someDigest = "sha256:" + strings.Repeat("a", 64)

// modelAccepted are Algorithms with a model.
func modelAccepted() map[string]map[string]any {
	objects := map[string]map[string]any{}
	for name, text := range map[string]string{
		"Version":             `{uri: models:/reco/7}`,
		"Alias":               `{uri: models:/reco@champion, liveAlias: live, candidateAlias: challenger}`,
		"CandidateAliasAlone": `{uri: models:/reco/7, candidateAlias: challenger}`,
		"NameWithSpaces":      `{uri: 'models:/reco für alle/7'}`,
		"NameWithAt":          `{uri: models:/reco@home@champion, liveAlias: home}`,
		"AliasLikeVersion":    `{uri: models:/reco@v1-stable}`,
		"RegistryEndpoints":   `{uri: 'models:/reco@champion?endpoint=https://mlflow.example.org&s3Endpoint=http://s3.example.org:9000'}`,
		"ClusterConfig":       `{uri: models:/reco/7, config: ClusterProviderConfig/mlflow}`,
		"OwnConfig":           `{uri: models:/reco/7, config: ProviderConfig/mlflow.a-b}`,
		"OneObject":           `{uri: s3://models/reco/7/model.onnx}`,
		"Folder":              `{uri: s3://models/reco/7/}`,
		"OnMinIO":             `{uri: 's3://models/reco?endpoint=http://minio.storage.svc:9000'}`,
		"Region":              `{uri: 's3://models/reco?region=eu-central-1'}`,
		"EndpointAndRegion":   `{uri: 's3://models/reco?region=eu-central-1&endpoint=https://s3.example.org', digest: "` + someDigest + `"}`,
		"Google":              `{uri: gs://my_models.example/reco/7, credentials: google, digest: "` + someDigest + `/5", cache: {resources: {requests: {storage: 1Gi}}}}`,
		"GoogleElsewhere":     `{uri: 'gs://models/reco?endpoint=http://gcs.test:4443'}`,
		"Hub":                 `{uri: hf://BAAI/bge-small-en-v1.5, credentials: hub}`,
		"HubCommit":           `{uri: hf://org/repo@5c38ec7c405ec4b44b94cc5a9bb96e735b38267a, cache: {resources: {requests: {storage: 1Gi}}}}`,
		"HubPull":             `{uri: hf://org/repo@refs/pr/3/onnx/model.onnx}`,
		"HubFile":             `{uri: 'hf://org/repo@main/model-Q4_K_M.gguf?endpoint=https://hub.example.org'}`,
		"Web":                 `{uri: 'https://models.example.org/reco/7.onnx?sig=a%2Fb'}`,
		"WebPlain":            `{uri: 'http://models.example.org:8080/7.onnx', digest: "` + someDigest + `"}`,
		"Image":               `{uri: "oci://registry.example.org:5000/models/reco@` + someDigest + `"}`,
		"ImageWithLogin":      `{uri: oci://registry.example.org/models/reco:7, credentials: login}`,
		"ImageVolume":         `{uri: oci://registry.example.org/models/reco:7}`,
		"ImageVerified":       `{uri: oci://r.example.org/reco:7, digest: "` + someDigest + `", cache: {resources: {requests: {storage: 1Gi}}}}`,
		"Volume":              `{uri: pvc://models}`,
		"VolumePath":          `{uri: pvc://models/reco..old/7}`,
		"VolumeVerified":      `{uri: pvc://models/, digest: "` + someDigest + `/12"}`,
		"WholeCache":          `{uri: s3://models/reco, cache: {resources: {requests: {storage: 21474836480}}, accessModes: [ReadWriteOnce]}}`,
	} {
		objects["Model"+name] = smallest(spec(`model: ` + text))
	}
	return objects
}

// modelRefused are Algorithms whose model is wrong.
func modelRefused() map[string]refused {
	const (
		object   = "must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
		folder   = "must be an absolute path without ':', other than / and /dev/shm"
		alias    = "must be letters, digits, '_' and '-', and not be latest or v with digits, which the registry reserves"
		cached   = "a cache is only for downloaded models: remove it, because a volume needs none"
		bytes    = "must be a quantity of at least 1Mi, for instance 20Gi"
		registry = " is only for the model registry: remove it, or name a model of the registry with models:/ in uri"
		other    = "candidateAlias must differ from the alias in uri and from liveAlias: choose another name"
		config   = "must be ProviderConfig/NAME or ClusterProviderConfig/NAME, with at most 63 lower case letters, digits, - and . in NAME"

		scheme = "must begin with s3://, gs://, hf://, https://, http://, models:/, oci:// or pvc://"
		s3     = "must be of the form s3://bucket/prefix or s3://bucket/prefix?endpoint=https://host&region=eu-central-1, without .."
		gs     = "must be of the form gs://bucket/prefix or gs://bucket/prefix?endpoint=https://host, without .."
		hf     = "must be of the form hf://organisation/repository, with @revision, /path and ?endpoint=https://host as needed, without .."
		web    = "must name a file, as in https://host/path/file, without a login: that belongs into the Secret of credentials"
		models = "must name a version or an alias: models:/name/7 or models:/name@alias, with ?endpoint=https://host and &s3Endpoint=https://host " +
			"as needed; a name has no / : % ? and #"
		reserved = "must not have the alias latest or v with digits, which the registry reserves: choose another"
		oci      = "must be oci:// and the reference of an image, for instance oci://registry.example.org/models/reco@sha256:…"
		pvc      = "must be of the form pvc://claim/path, with the name of a PersistentVolumeClaim and without .., ? and #"
	)
	cases := map[string]refused{}
	add := func(name, reason, text string, want string) {
		cases["Model"+name] = refused{reason: reason, object: smallest(spec("model: " + text)), want: []string{"spec.model" + want}}
	}
	uri := func(name, reason, uri, want string) {
		add(name, reason, `{uri: "`+uri+`"}`, `.uri: Invalid value: "`+uri+`": `+want)
	}

	add("Nowhere", "Which model?", `{credentials: m}`, ".uri: Required value")
	uri("UnknownScheme", "The choices are named.", "ftp://models/reco", scheme)
	uri("NoScheme", "A folder of the container is none.", "/models/reco", scheme)

	uri("BucketAlone", "A whole bucket is a mistake more often than a model.", "s3://models", s3)
	uri("S3Dots", "It might lead elsewhere.", "s3://models/../secrets", s3)
	uri("S3Endpoint", "The form is named.", "s3://models/reco?endpoint=s3.example.org", s3)
	uri("S3Region", "The form is named.", "s3://models/reco?region=EU", s3)
	uri("S3Unknown", "A typing error is told, not ignored.", "s3://models/reco?regoin=eu", s3)
	uri("GoogleBucketAlone", "So it is at Google.", "gs://models", gs)
	uri("GoogleRegion", "Google has none.", "gs://models/reco?region=eu", gs)
	uri("GoogleDots", "It might lead elsewhere.", "gs://models/a/../b", gs)
	uri("HubOrganisation", "A model is in a repository.", "hf://org", hf)
	uri("HubSlash", "A revision with a slash would be a path.", "hf://org/repo@feature@x/y", hf)
	uri("HubDots", "It might lead elsewhere.", "hf://org/repo@main/../x", hf)
	uri("WebHost", "A file has a name.", "https://models.example.org", web)
	uri("WebFolder", "A folder is no file.", "https://models.example.org/reco/", web)
	uri("WebLogin", "Everyone who may read the Algorithm could read the password.", "https://me:secret@models.example.org/m", web)
	uri("WebFragment", "No server gets it.", "https://models.example.org/m#a", web)
	add("WebPlain", "Anyone on the way could replace it.", `{uri: "http://models.example.org/m"}`,
		".digest: Invalid value: is missing: anyone on the way can replace what http:// downloads: set digest, or use https://")

	uri("NeitherVersionNorAlias", "Which version?", "models:/reco", models)
	uri("VersionInWords", "Versions are numbers.", "models:/reco/latest", models)
	uri("VersionZero", "Versions begin with one.", "models:/reco/0", models)
	uri("NameWithSlash", "MLflow cannot have it.", "models:/a/b/7", models)
	uri("RegistryEndpoint", "The form is named.", "models:/reco/7?endpoint=mlflow.example.org", models)
	uri("RegistryRegion", "A typing error is told.", "models:/reco/7?region=eu", models)
	uri("ReservedAlias", "MLflow keeps it for itself, in any case of its letters.", "models:/reco@Latest", reserved)
	uri("ReservedVersion", "MLflow takes it for a version.", "models:/reco@V12?endpoint=https://a", reserved)
	add("LiveAliasIsAlias", "What is live would say what should be.", `{uri: "models:/reco@champion?endpoint=https://a", liveAlias: champion}`,
		".liveAlias: Invalid value: liveAlias must differ from the alias in uri: that one chooses the version, liveAlias reports the live one")
	add("ReservedLiveAlias", "MLflow keeps it for itself.", `{uri: models:/reco/7, liveAlias: V12}`, `.liveAlias: Invalid value: "V12": `+alias)
	add("CandidateIsFollowed", "It would say two things.", `{uri: models:/reco@challenger, candidateAlias: challenger}`, ".candidateAlias: Invalid value: "+other)
	add("CandidateIsLive", "It would say two things.", `{uri: models:/reco/7, liveAlias: a, candidateAlias: a}`, ".candidateAlias: Invalid value: "+other)
	add("ReservedCandidateAlias", "MLflow keeps it for itself.", `{uri: models:/reco/7, candidateAlias: latest}`, `.candidateAlias: Invalid value: "latest": `+alias)
	add("LongCandidateAlias", "The bound is named.", `{uri: models:/reco/7, candidateAlias: `+strings.Repeat("a", 201)+`}`,
		".candidateAlias: Too long: may not be more than 200 bytes")
	add("ConfigKind", "The choices are named.", `{uri: models:/reco/7, config: Config/mlflow}`, `.config: Invalid value: "Config/mlflow": `+config)
	add("ConfigName", "No config can have the name.", `{uri: models:/reco/7, config: ProviderConfig/MLflow}`, `.config: Invalid value: "ProviderConfig/MLflow": `+config)
	add("ConfigOfBucket", "Nothing would read it.", `{uri: s3://models/reco, config: ProviderConfig/a}`, ".config: Invalid value: config"+registry)
	add("LiveAliasOfBucket", "There is nothing to keep it in.", `{uri: s3://models/reco, liveAlias: a}`, ".liveAlias: Invalid value: liveAlias"+registry)
	add("CandidateAliasOfHub", "There is nothing to keep it in.", `{uri: hf://org/repo, candidateAlias: a}`, ".candidateAlias: Invalid value: candidateAlias"+registry)

	uri("ImageTwice", "References have no scheme of their own.", "oci://oci://r.example.org/reco@x", oci)

	uri("ClaimInUpperCase", "No claim can have the name.", "pvc://A", pvc)
	uri("PathUpwards", "It would leave the volume.", "pvc://a/b/../..", pvc)
	add("CacheOfVolume", "It is a volume already.", `{uri: pvc://models, cache: {resources: {requests: {storage: 1Gi}}}}`, ".cache: Invalid value: "+cached)
	add("CredentialsOfVolume", "Nothing would read them.", `{uri: pvc://models, credentials: a}`,
		".credentials: Invalid value: credentials are only for downloads, and a volume is not downloaded: remove them")

	add("CredentialsInUpperCase", "No Secret can have the name.", `{uri: s3://models/reco, credentials: A}`, `.credentials: Invalid value: "A": `+object)
	add("ShortDigest", "It could never be right.", `{uri: s3://models/reco, digest: "sha256:abc"}`,
		`.digest: Invalid value: "sha256:abc": must be sha256: and 64 hexadecimal digits in lower case, as companion digest prints it, with / and the size in bytes as needed`)
	add("NoSize", "A model of no bytes is none.", `{uri: s3://models/reco, digest: "`+someDigest+`/0"}`,
		`.digest: Invalid value: "`+someDigest+`/0": must be sha256: and 64 hexadecimal digits in lower case, as companion digest prints it, with / and the size in bytes as needed`)
	add("CacheWithoutSize", "A volume needs a size.", `{uri: s3://models/reco, cache: {}}`, ".cache.resources: Required value")
	add("CacheOfMilliBytes", "20m is no byte at all.", `{uri: s3://models/reco, cache: {resources: {requests: {storage: 20m}}}}`, `.cache.resources.requests.storage: Invalid value: "20m": `+bytes)
	add("CacheClass", "No class can have the name.", `{uri: s3://models/reco, cache: {resources: {requests: {storage: 1Gi}}, storageClassName: A}}`,
		`.cache.storageClassName: Invalid value: "A": `+object)
	add("CacheReadOnly", "Nothing could be put into it.", `{uri: s3://models/reco, cache: {resources: {requests: {storage: 1Gi}}, accessModes: [ReadOnlyMany]}}`,
		`.cache.accessModes[0]: Unsupported value: "ReadOnlyMany": supported values: "ReadWriteMany", "ReadWriteOnce"`)
	return cases
}

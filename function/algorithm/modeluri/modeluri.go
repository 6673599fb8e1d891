// SPDX-License-Identifier: Apache-2.0

// Package modeluri takes spec.model.uri of an Algorithm apart.
package modeluri

import (
	"net/url"
	"path"
	"strings"
)

// Schemes of URIs, which say where a model comes from.
const (
	S3       = "s3"
	GS       = "gs"
	HF       = "hf"
	OCI      = "oci"
	PVC      = "pvc"
	Registry = "models"
)

// A URI of a model, taken apart. The schema has checked it; of another one it has what can be read.
type URI struct {
	// Scheme, such as s3.
	Scheme string
	// Base is the URI without what Capstan itself reads from its query. The query of https:// is the server's.
	Base string

	// Endpoint, S3Endpoint and Region of the query, empty where it has none.
	Endpoint, S3Endpoint, Region string

	// Name of a model of the registry, with either Version or Alias.
	Name, Version, Alias string

	// Claim of a volume, and Path of the model in it. An empty path is the whole volume.
	Claim, Path string
}

// Parse a URI that the schema accepts.
func Parse(uri string) URI {
	u := URI{Base: uri}
	var rest string
	u.Scheme, rest, _ = strings.Cut(uri, ":")
	switch u.Scheme {
	case S3, GS, HF, Registry:
		u.Base = readQuery(uri, &u)
	}
	switch u.Scheme {
	case Registry:
		readModel(strings.TrimPrefix(u.Base, "models:/"), &u)
	case PVC:
		claim, below, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "/")
		u.Claim = claim
		if p := path.Clean(below); p != "." && p != "/" {
			u.Path = strings.TrimPrefix(p, "/")
		}
	}
	return u
}

// readQuery of a URI into u. It returns the URI without it. An endpoint ends at the next & and is written as it is.
func readQuery(uri string, u *URI) string {
	base, query, _ := strings.Cut(uri, "?")
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		switch key {
		case "endpoint":
			u.Endpoint = value
		case "s3Endpoint":
			u.S3Endpoint = value
		case "region":
			u.Region = value
		}
	}
	return base
}

// readModel of the registry into u: name/version or name@alias. A name may contain @.
func readModel(text string, u *URI) {
	if name, version, ok := strings.Cut(text, "/"); ok {
		u.Name, u.Version = name, version
		return
	}
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		u.Name, u.Alias = text[:i], text[i+1:]
		return
	}
	u.Name = text
}

// Reference of an image.
func (u URI) Reference() string { return strings.TrimPrefix(u.Base, "oci://") }

// Canonical is the same for URIs that differ in the order of their query only. One of the registry is without version and alias:
// what they mean is known only from the registry.
func (u URI) Canonical() string {
	base := u.Base
	if u.Scheme == Registry {
		base = "models:/" + u.Name
	}
	q := url.Values{}
	for key, value := range map[string]string{"endpoint": u.Endpoint, "s3Endpoint": u.S3Endpoint, "region": u.Region} {
		if value != "" {
			q.Set(key, value)
		}
	}
	if len(q) == 0 {
		return base
	}
	return base + "?" + q.Encode()
}

// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/model"
)

// Credentials are the keys of a Secret that a folder holds: the keys of the connection Secret of a Bucket, the key of a service
// account of Google, username and password or token of a server, or the .dockerconfigjson of a registry of images.
type Credentials struct {
	Endpoint, Region, Bucket                   string
	AccessKeyID, SecretAccessKey, SessionToken string
	Username, Password, Token                  string
	// ServiceAccountKey of Google, JSON.
	ServiceAccountKey string
	// CA are further authorities whose certificates count, PEM.
	CA []byte
	// Docker are the logins of a .dockerconfigjson by registry.
	Docker map[string]authn.AuthConfig
}

// remedySecret says where to look.
const remedySecret = "correct the Secret that spec.model.credentials names"

// ReadCredentials of a folder; "" has none.
func ReadCredentials(dir string) (Credentials, error) {
	c := Credentials{}
	if dir == "" {
		return c, nil
	}
	if _, err := os.Stat(dir); err != nil {
		return c, fmt.Errorf("cannot read credentials: %w", err)
	}
	var docker string
	for key, field := range map[string]*string{
		"endpoint": &c.Endpoint, "region": &c.Region, "bucket": &c.Bucket,
		"accessKeyId": &c.AccessKeyID, "secretAccessKey": &c.SecretAccessKey, "sessionToken": &c.SessionToken,
		"username": &c.Username, "password": &c.Password, "token": &c.Token,
		".dockerconfigjson": &docker,
		// The second name is the one that KServe's users have in their Secrets.
		"serviceAccountKey": &c.ServiceAccountKey, "gcloud-application-credentials.json": &c.ServiceAccountKey,
	} {
		value, err := os.ReadFile(filepath.Join(dir, key))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return c, fmt.Errorf("cannot read credentials: %w", err)
		}
		*field = string(bytes.TrimSpace(value))
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("cannot read credentials: %w", err)
	}
	c.CA = ca
	if (c.AccessKeyID == "") != (c.SecretAccessKey == "") {
		return c, failure.New(failure.Invalid, "the credentials have only one of accessKeyId and secretAccessKey", remedySecret)
	}
	return c, c.readDocker(docker)
}

func (c *Credentials) readDocker(config string) error {
	if config == "" {
		return nil
	}
	var file struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	// What the decoder says could quote a password.
	if json.Unmarshal([]byte(config), &file) != nil {
		return failure.New(failure.Invalid, "the key .dockerconfigjson of the credentials cannot be read", remedySecret)
	}
	c.Docker = map[string]authn.AuthConfig{}
	for registry, login := range file.Auths {
		c.Docker[registryHost(registry)] = login
	}
	return nil
}

// registryHost is the host of a registry as clients have written it at one time or another.
func registryHost(name string) string {
	_, rest, found := strings.Cut(name, "://")
	if !found {
		rest = name
	}
	host, _, _ := strings.Cut(rest, "/")
	if host == "docker.io" || host == "registry-1.docker.io" {
		return "index.docker.io"
	}
	return host
}

// registry returns the login of a registry of images.
func (c *Credentials) registry(host string) authn.Authenticator {
	if login, ok := c.Docker[registryHost(host)]; ok {
		return authn.FromConfig(login)
	}
	switch {
	case c.Token != "":
		return authn.FromConfig(authn.AuthConfig{RegistryToken: c.Token})
	case c.Username != "":
		return authn.FromConfig(authn.AuthConfig{Username: c.Username, Password: c.Password})
	}
	return authn.Anonymous
}

// toward a server: the options without what is not for it. What a Secret has for one registry of images, what proves itself to
// Google and keys that only sign are not sent to others in any case.
func (o Options) toward(server *url.URL) Options {
	c := &o.Credentials
	if !o.Registered || names(o.Trusted, server) || names(c.Endpoint, server) {
		return o
	}
	o.withheld = c.Token != "" || c.Username != ""
	c.Token, c.Username, c.Password = "", "", ""
	return o
}

// names reports whether a URL names a server, with TLS if the URL has it.
func names(address string, server *url.URL) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && u.Host == server.Host && (server.Scheme == u.Scheme || server.Scheme == schemeHTTPS)
}

// serverOf a source that username, password or token are sent to as they are. Servers of other sources are what the spec or the credentials
// name in any case.
func serverOf(scheme, uri string, o Options) (*url.URL, bool) {
	var u *url.URL
	var err error
	switch scheme {
	case "gs":
		u, err = endpointOf(o, googleEndpoint, "Google Cloud Storage")
	case "hf":
		u, err = endpointOf(o, hubEndpoint, "a hub")
	case schemeOCI:
		var ref name.Reference
		if ref, err = name.ParseReference(strings.TrimPrefix(uri, "oci://")); err == nil {
			u = &url.URL{Scheme: schemeHTTPS, Host: ref.Context().RegistryStr()}
		}
	case schemeHTTPS, schemeHTTP:
		u, err = url.Parse(uri)
	default:
		return nil, false
	}
	return u, err == nil
}

// unsigned is a source whose server the credentials are not sent to.
type unsigned struct{ Source }

// Size of the model.
func (s unsigned) Size(ctx context.Context) (int64, bool, error) {
	size, exact, err := s.Source.Size(ctx)
	return size, exact, explained(err)
}

// Fetch the model.
func (s unsigned) Fetch(ctx context.Context, folder *model.Folder) error {
	return explained(s.Source.Fetch(ctx, folder))
}

// explained refusal of a server that credentials were not sent to.
func explained(err error) error {
	var refusal *failure.Failure
	if !errors.As(err, &refusal) || refusal.Reason != failure.Forbidden {
		return err
	}
	return failure.New(failure.Forbidden, refusal.Cause+"; the credentials were not sent, because only the model registry names this server",
		"set the key endpoint of the Secret that spec.model.credentials names to the URL of this server, if they are for it")
}

// sign a request as a person or a program that shows a token.
func (c *Credentials) sign(r *http.Request) {
	switch {
	case c.Token != "":
		r.Header.Set("Authorization", "Bearer "+c.Token)
	case c.Username != "":
		r.SetBasicAuth(c.Username, c.Password)
	}
}

// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
)

// Credentials are the keys of a Secret that a folder holds: the keys of the connection Secret of a Bucket, username and password or
// token of a server, or the .dockerconfigjson of a registry of images.
type Credentials struct {
	Endpoint, Region, Bucket                   string
	AccessKeyID, SecretAccessKey, SessionToken string
	Username, Password, Token                  string
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

// sign a request as a person or a program that shows a token.
func (c *Credentials) sign(r *http.Request) {
	switch {
	case c.Token != "":
		r.Header.Set("Authorization", "Bearer "+c.Token)
	case c.Username != "":
		r.SetBasicAuth(c.Username, c.Password)
	}
}

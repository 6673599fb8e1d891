// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/capstan-dev/capstan/apis/members"
)

// Keys of the Secret of the source.
const (
	keyHost     = "host"
	keyPort     = "port" // may be absent
	keyUsername = "username"
	keyPassword = "password"
	keyCA       = "ca.crt"
)

// A Secret of a source.
type Secret struct {
	User, Password string
	// CA is the file with the authority of the source; "" without one.
	CA string
}

// ReadSecret that is mounted. It says which host it is for: who may make a Database, and may not read the Secret, cannot send its password elsewhere.
func ReadSecret(i members.Import, folder string) (Secret, error) {
	var values [3]string
	for n, key := range []string{keyHost, keyUsername, keyPassword} {
		var err error
		if values[n], err = value(folder, key); err != nil {
			return Secret{}, err
		}
	}
	if values[0] != i.Host {
		return Secret{}, fmt.Errorf("the key %q of the Secret of the source is not %q, which is spec.from.server.host: a password goes only to the host that its Secret names: "+
			"correct the Secret, or make another Database", keyHost, i.Host)
	}
	if port, err := value(folder, keyPort); err == nil && port != strconv.Itoa(int(i.Port)) {
		return Secret{}, fmt.Errorf("the key %q of the Secret of the source is not %d, which is spec.from.server.port: a password goes only to the port that its Secret names: "+
			"correct the Secret, or make another Database", keyPort, i.Port)
	}
	s := Secret{User: values[1], Password: values[2]}
	switch _, err := os.Stat(filepath.Join(folder, keyCA)); {
	case err == nil:
		s.CA = filepath.Join(folder, keyCA)
	case !errors.Is(err, fs.ErrNotExist):
		return Secret{}, fmt.Errorf("cannot look for %s in the Secret of the source: %w", keyCA, err)
	}
	return s, nil
}

// ErrNoAuthority is why an authority alone cannot be checked.
var ErrNoAuthority = fmt.Errorf("the Secret of the source has no key %q: add the authority that signed the certificate of the source", keyCA)

// ErrAuthority is why a connection is not made without a check.
var ErrAuthority = fmt.Errorf("the Secret of the source has the key %q, and spec.from.server.tls is Disable: the Secret asks for a check of the server: "+
	"remove the key, or make another Database with spec.from.server.tls VerifyFull", keyCA)

// value of the mounted Secret.
func value(folder, key string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(folder, key))
	if err != nil {
		return "", fmt.Errorf("the Secret of the source has no key %q: create the Secret that spec.from.server.credentialsSecretRef names, with the keys host, username and password", key)
	}
	text := strings.TrimRight(string(raw), "\r\n")
	if text == "" || strings.ContainsAny(text, "\x00\n") {
		return "", fmt.Errorf("the key %q of the Secret of the source is empty, or has more than one line", key)
	}
	return text, nil
}

// Unreached says in few words why there was no answer of a source. It has no addresses and no answers of other servers: who names a host must not
// learn from it what the network has.
func Unreached(err error) error {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var hostname x509.HostnameError
	var timeout net.Error
	switch {
	case errors.As(err, &name):
		return errors.New("the name of its host is not known: look at spec.from.server.host")
	case errors.As(err, &hostname), errors.As(err, &certificate):
		return errors.New("its certificate does not fit: look at ca.crt in the Secret, and at spec.from.server.tls")
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("nothing listens at its host and port, or a firewall refuses")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("it has not answered in time: look at that server, and at the network between")
	default:
		return errors.New("the connection has failed: look at that server, at its log, and at spec.from.server.tls")
	}
}

// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/reach"
	"github.com/capstan-dev/capstan/images/member/vault"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

const (
	// greeting is how long a host may take to show its certificate, and usageLimit how long to measure the usage of its volume.
	greeting   = 15 * time.Second
	usageLimit = 10 * time.Second
	// silence is how long a host that takes a backup may say nothing.
	silence = 4 * beatEvery
	// mostAnswer is how long an answer may be, in bytes.
	mostAnswer = 1 << 20
)

// Take a backup at the host of the settings, as a pod that takes backups, and put the answer into result.
func Take(ctx context.Context, tls pgbackrest.TLS, s pgmember.Backup, result any) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	res, err := call(ctx, tls, http.MethodPost, s.Repository, pathBackup, s)
	if err != nil {
		return fmt.Errorf("cannot ask for a backup: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	watchdog := time.AfterFunc(silence, func() { cancel(errors.New("it said nothing for too long: see whether its pod runs")) })
	defer watchdog.Stop()
	raw, err := io.ReadAll(io.LimitReader(heard{res.Body, func() { watchdog.Reset(silence) }}, mostAnswer))
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("the host of the volume of backups did not end the backup: %w", err)
	}
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return fmt.Errorf("cannot understand what became of the backup: %w", err)
	}
	if a.Error != "" {
		return errors.New(a.Error)
	}
	if err := json.Unmarshal(a.Result, result); err != nil {
		return fmt.Errorf("cannot understand the backup: %w", err)
	}
	return nil
}

// heard reports everything that is read.
type heard struct {
	io.Reader

	something func()
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		h.something()
	}
	return n, err
}

// CreateStanza of the Database, unless it exists. The host of a volume does it itself.
func CreateStanza(ctx context.Context, run pgbackrest.Runner, s pgmember.Backup) error {
	r, err := pgbackrest.Read(pgmember.FolderBackup, s.Repository)
	if err != nil {
		return err
	}
	if r.Served == nil {
		_, err := run.Run(ctx, "stanza-create", "--stanza="+s.Stanza)
		return err
	}
	return Create(ctx, r, s)
}

// Create the stanza of the settings at the host of a repository, unless it is there: pgBackRest does so only there.
func Create(ctx context.Context, r pgbackrest.Repository, s pgmember.Backup) error {
	res, err := call(ctx, r.Served.TLS, http.MethodPost, r.Served.Server, pathStanza, s)
	if err != nil {
		return fmt.Errorf("cannot make the stanza: %w", err)
	}
	_ = res.Body.Close()
	return nil
}

// Usage of the volume of a repository: Percent, and Size of its file system in bytes.
func Usage(ctx context.Context, r pgbackrest.Repository) (vault.Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, usageLimit)
	defer cancel()
	res, err := call(ctx, r.Served.TLS, http.MethodGet, r.Served.Server, vault.PathUsage, nil)
	if err != nil {
		return vault.Usage{}, fmt.Errorf("cannot find out how full the volume of backups is: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	u, err := vault.ReadUsage(res.Body)
	if err != nil {
		return vault.Usage{}, fmt.Errorf("cannot find out how full the volume of backups is: %w", err)
	}
	return u, nil
}

// call a host, with the JSON of a body, if any. An answer that is not 200 is an error.
func call(ctx context.Context, identity pgbackrest.TLS, method, host, path string, body any) (*http.Response, error) {
	config, err := identity.Client()
	if err != nil {
		return nil, err
	}
	var content []byte
	if body != nil {
		if content, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("cannot call %s: %w", host, err)
		}
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: config, DisableKeepAlives: true, TLSHandshakeTimeout: greeting, DialContext: reach.Dial, ResponseHeaderTimeout: silence,
	}}
	to := "https://" + net.JoinHostPort(host, strconv.Itoa(pgmember.PortRepository)) + path
	req, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("cannot call %s: %w", host, err)
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, mostAnswer))
	_ = res.Body.Close()
	if said := vault.Said(raw); said != "" && err == nil {
		return nil, errors.New(said)
	}
	return nil, fmt.Errorf("%s answers %s", host, res.Status)
}

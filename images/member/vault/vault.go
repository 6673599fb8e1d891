// SPDX-License-Identifier: Apache-2.0

// Package vault has what hosts of volumes of backups have in common: who may come, how a request is refused, and how full the volume is.
package vault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/bucket"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/member/web"
)

// Place of backups that are on a volume, for people.
const Place = "the volume of backups"

// PathUsage is where a host says how full its volume is.
const PathUsage = "/usage"

// Refused begins what a host says when it cannot do what was requested.
const Refused = "refused: "

// Refuse a request and say why.
func Refuse(w http.ResponseWriter, status int, err error) {
	http.Error(w, Refused+err.Error(), status)
}

// Said is why a host refused a request; "" when the answer is none of a host.
func Said(body []byte) string {
	said, ok := strings.CutPrefix(string(body), Refused)
	if !ok {
		return ""
	}
	return strings.TrimSpace(said)
}

// Only who has a certificate of a common name may come.
func Only(name string, handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if certificate.CallerOf(r) != name {
			Refuse(w, http.StatusForbidden, errors.New("the certificate is not one that may do that"))
			return
		}
		handle(w, r)
	}
}

// A Usage of a volume: percent, and the size of its file system in bytes.
type Usage struct {
	Percent int   `json:"percent"`
	Size    int64 `json:"size"`
}

// Measured answers how full the volume at a path is.
func Measured(at string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		u, err := volume.Measure(at)
		if err != nil {
			Refuse(w, http.StatusInternalServerError, err)
			return
		}
		Write(w, Usage{u.Percent, u.Size})
	}
}

// Write JSON. A client that is gone reads nothing.
func Write(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	if raw, err := json.Marshal(value); err == nil {
		_, _ = w.Write(raw)
	}
}

// ReadUsage of an answer.
func ReadUsage(body io.Reader) (Usage, error) {
	var u Usage
	err := json.NewDecoder(io.LimitReader(body, web.MaxAnswer)).Decode(&u)
	return u, err
}

// Report how full a volume is, after the report before.
func Report(before members.RepositoryReport, u Usage) members.RepositoryReport {
	return members.RepositoryReport{
		Disk:        volume.Class(before.Disk, u.Percent),
		UsedPercent: int32(volume.Step(int(before.UsedPercent), u.Percent)), //nolint:gosec // It is at most 100.
		FileSystem:  fmt.Sprintf("%dMi", u.Size>>20),
	}
}

// Serve requests that come to a listener, until the context ends. A request may take hours, which are not bounded here but by who sends it.
func Serve(ctx context.Context, l net.Listener, handler http.Handler) error {
	return web.Serve(ctx, l, &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	})
}

// Files of a certificate in the folder that its Secret is mounted to.
type Files struct{ Cert, Key, CA string }

// FilesIn a folder.
func FilesIn(dir string) Files {
	return Files{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), CA: filepath.Join(dir, "ca.crt")}
}

// ReadFiles in a folder, which have to be there. The error is a *bucket.NotReadyError when one is missing.
func ReadFiles(dir string) (Files, error) {
	f := FilesIn(dir)
	for _, file := range []string{f.Cert, f.Key, f.CA} {
		_, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			return f, &bucket.NotReadyError{Message: "the Secret with the certificate for the volume of backups is not there: see its Certificate with a " +
				"name that ends in pg-repository, and whether cert-manager runs"}
		}
		if err != nil {
			return f, fmt.Errorf("cannot read the certificate for the volume of backups: %w", err)
		}
	}
	return f, nil
}

// IsBucket reports whether what is mounted to a folder opens a bucket.
func IsBucket(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "endpoint"))
	return err == nil
}

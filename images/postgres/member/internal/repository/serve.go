// SPDX-License-Identifier: Apache-2.0

// Package repository is the host of a repository of backups on a volume, beside the pgBackRest that serves it: it takes backups
// on request, which pgBackRest does only there, and keeps small objects.
package repository

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/vault"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/objectstore"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// Paths beside the path of objects.
const (
	pathBackup = "/backup"
	pathStanza = "/stanza"
)

// mostSettings is how long a request may be, in bytes.
const mostSettings = 256 << 10

// beatEvery is how often a client that waits for a backup hears that it continues.
const beatEvery = 15 * time.Second

// A Host of a repository.
type Host struct {
	// Address to listen at.
	Address string
	// Config has the certificate to show and the authority of its clients. It is read again for each connection.
	Config func() (*tls.Config, error)
	// Objects is the folder of small objects, and Volume where the volume is mounted.
	Objects, Volume string
	// Take a backup. The client gets the value.
	Take func(context.Context, pgmember.Backup) (any, error)
	// Create the stanza, unless it is there.
	Create func(context.Context, pgmember.Backup) error
}

// An answer to who asked for a backup: either the result or why there is none.
type answer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// Serve until the context ends.
func (h Host) Serve(ctx context.Context) error {
	objects, err := open(h.Objects)
	if err != nil {
		return err
	}
	defer objects.close()
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathBackup, vault.Only(pgmember.BackupCommonName, h.backup))
	mux.HandleFunc("POST "+pathStanza, vault.Only(pgmember.RepositoryCommonName, h.create))
	mux.HandleFunc("GET "+vault.PathUsage, vault.Only(pgmember.RepositoryCommonName, vault.Measured(h.Volume)))
	mux.HandleFunc("GET "+objectstore.Path+"{key...}", vault.Only(pgmember.RepositoryCommonName, objects.get))
	mux.HandleFunc("PUT "+objectstore.Path+"{key...}", vault.Only(pgmember.RepositoryCommonName, objects.put))
	l, err := certificate.Listen(h.Address, h.Config)
	if err != nil {
		return err
	}
	return vault.Serve(ctx, l, mux)
}

// settings of a request. Without them it is refused.
func settings(w http.ResponseWriter, r *http.Request) (pgmember.Backup, bool) {
	var s pgmember.Backup
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostSettings)).Decode(&s)
	if err != nil {
		err = fmt.Errorf("cannot understand the request: %w", err)
	} else {
		err = pgbackrest.Check(s)
	}
	if err != nil {
		vault.Refuse(w, http.StatusBadRequest, err)
	}
	return s, err == nil
}

func (h Host) create(w http.ResponseWriter, r *http.Request) {
	s, ok := settings(w, r)
	if !ok {
		return
	}
	if err := h.Create(r.Context(), s); err != nil {
		vault.Refuse(w, http.StatusInternalServerError, err)
	}
}

// backup with the settings of the request. Its connection ends it.
func (h Host) backup(w http.ResponseWriter, r *http.Request) {
	s, ok := settings(w, r)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	done := make(chan answer, 1)
	go func() { done <- answered(h.Take(ctx, s)) }()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	to := http.NewResponseController(w)
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case a := <-done:
			vault.Write(w, a)
			return
		case <-tick.C:
			// White space before the answer is none of it.
			_, err := io.WriteString(w, "\n")
			if err := errors.Join(err, to.Flush()); err != nil {
				cancel()
				<-done
				return
			}
		}
	}
}

// answered is what becomes of a backup.
func answered(result any, err error) answer {
	var raw json.RawMessage
	if err == nil {
		raw, err = json.Marshal(result)
	}
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Result: raw}
}

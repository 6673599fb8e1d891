// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"net"
	"net/http"
	"time"
)

// An endpoint serves HTTP at an address of its own.
type endpoint struct {
	listener net.Listener
	server   *http.Server
}

// expose a handler at an address, if there is one.
func (s *Server) expose(address string, h http.Handler) error {
	if address == "" {
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	s.endpoints = append(s.endpoints, endpoint{listener: l, server: &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
	}})
	return nil
}

// probes of a kubelet, which has no client certificate and so cannot ask the gRPC health service.
func (s *Server) probes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.ready.Load() {
			http.Error(w, "draining", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	return mux
}

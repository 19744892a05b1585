package rewrite

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// refusal is an answer that the middle gives in the server's place.
func refusal(req *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// compact makes etcd forget every revision but the newest.
func compact(s *fixture) {
	s.Helper()
	path, _ := s.Server.Kubeconfig()
	config, err := os.ReadFile(path)
	s.Must(err)
	socket := regexp.MustCompile(`unix://[^\s"]+`).FindString(string(config))
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{socket}, Context: s.Context()})
	s.Must(err)
	defer etcd.Close()
	newest, err := s.Storage.Revision(s.Context())
	s.Must(err)
	_, err = etcd.Compact(s.Context(), newest, clientv3.WithCompactPhysical())
	s.Must(err)
}

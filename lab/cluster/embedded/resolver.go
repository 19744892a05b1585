package embedded

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"k8s.io/apiserver/pkg/util/webhook"
)

// servicesPath is where a process that holds the token says at which address a Service can be reached.
const servicesPath = "/crdlab/services"

// service is one Service and the loopback address behind it.
type service struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Port      int32  `json:"port"`
	Address   string `json:"address"` // host:port
}

func (s service) key() string { return fmt.Sprintf("%s/%s:%d", s.Namespace, s.Name, s.Port) }

// services stands in for the cluster's network: it says where the Services behind webhook references are. It outlives
// the API servers that ask it.
type services struct {
	mu        sync.RWMutex
	addresses map[string]string
}

var _ webhook.ServiceResolver = &services{}

// ResolveEndpoint says where a webhook's Service is; the API server then checks its certificate for NAME.NAMESPACE.svc.
func (s *services) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	key := service{Namespace: namespace, Name: name, Port: port}.key()
	s.mu.RLock()
	defer s.mu.RUnlock()
	address, ok := s.addresses[key]
	if !ok {
		return nil, fmt.Errorf("service %q, port %d: nobody serves it", namespace+"/"+name, port)
	}
	return &url.URL{Scheme: "https", Host: address}, nil
}

// ServeHTTP sets (POST) or removes (DELETE) a Service. Who removes one says the address too, so that nobody removes what
// another has set in the meantime.
func (s *services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in service
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&in); err != nil {
		http.Error(w, "not a service: "+err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Method == http.MethodPost:
		s.addresses[in.key()] = in.Address
	case r.Method == http.MethodDelete && s.addresses[in.key()] == in.Address:
		delete(s.addresses, in.key())
	case r.Method != http.MethodDelete:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

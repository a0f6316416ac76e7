# Varnish: the built-in VCL, and a window in which it serves stale while it fetches.
vcl 4.1;
backend default {
  .host = "{{.OriginHost}}";
  .port = "{{.OriginPort}}";
}
sub vcl_backend_response {
  set beresp.grace = 10m;
}

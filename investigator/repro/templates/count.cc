static int32_t CountInCopy(const char* text, size_t length) {
  char* copy = static_cast<char*>(malloc(length + 1));
  memcpy(copy, text, length);
  copy[length] = 0;
  int32_t count = 0;
  for (const char* at = copy; *at != 0; ++count) {
    if (static_cast<unsigned char>(*at++) >= 0xc0) {
      while ((*at & 0xc0) == 0x80) ++at;
    }
  }
  free(copy);
  return count;
}

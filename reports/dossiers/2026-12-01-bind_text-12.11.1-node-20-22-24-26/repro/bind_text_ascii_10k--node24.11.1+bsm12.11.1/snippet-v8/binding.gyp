{
  'targets': [
    {
      'target_name': 'snippet',
      'sources': ['snippet.cc'],
    },
  ],
}
